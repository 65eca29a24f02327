"""Turns text into stored chunks: chunking, type detection, linking, and REMEMBER, which combines them.

May import store and text. Reading files and foreign formats is in `interchange`.
"""

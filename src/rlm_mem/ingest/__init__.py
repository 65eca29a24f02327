"""Text in, chunks out: cutting, type detection, linking, and REMEMBER, which does all three in one commit.

May import store and text. Reading files and foreign formats is in `interchange`.
"""

"""Text in, chunks out: cutting, type detection, linking, and REMEMBER, which does all three in one commit.

May import store and text. Does not live here: reading files or foreign formats (`interchange`), and search.
"""

"""Turns text into stored chunks: chunking, type detection, linking, and REMEMBER, which combines them.

``remember`` stores one text, ``filling`` many; ``chunking`` splits a text (``cuts``) and detects types, ``linking``
links the chunks (``batch_index`` while many are stored), ``noise`` removes links of earlier rules. Reading files and
foreign formats is in `interchange`.
"""

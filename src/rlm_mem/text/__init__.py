"""The analysis of language, without I/O, used by store, ingest and search alike.

Contents: token counts (`tokens`), the structure of a text (`blocks`), its segments and terms (`analysis`), dates
(`dates`), keys and passwords in it (`secrets`). Nothing here reads files, handles chunks or ranks.
"""

ANALYSIS_VERSION = 4
"""Raised whenever terms or flags change meaning: an index written by another version must be rebuilt."""

"""Language without I/O, used by store, ingest and search alike.

Lives here: token counts (`tokens`), the structure of a text (`blocks`), its segments and terms (`analysis`), dates
(`dates`), keys and passwords in it (`secrets`). Does not live here: anything that reads a file, knows a chunk or ranks.
"""

ANALYSIS_VERSION = 2
"""Raised whenever terms or flags change meaning: an index written by another version must be rebuilt."""

"""Language without I/O, used by store, ingest and search alike.

Lives here: token counts (`tokens`), the structure of a text (`speakers`, `sentences`, `blocks`, `segments`),
terms (`analysis`) and dates (`dates`). Does not live here: anything that reads a file, knows a chunk or ranks.
"""

"""The local backend: JSON files are the truth; a SQLite index and postings beside them are derived from the files."""

from __future__ import annotations

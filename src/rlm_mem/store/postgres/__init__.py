"""The PostgreSQL backend: chunks, index and audit log as rows of one database, for many machines at once.

Nothing here is imported before a DSN is opened, so nothing else needs the extra ``postgres``. Every key begins
with the namespace; no statement crosses namespaces but the one that lists them; no lock and no setting outlives a
transaction, so connections may be pooled by transaction in between.
"""

from __future__ import annotations

"""The PostgreSQL backend: chunks, index and audit log as rows of a database that many machines share.

Nothing here is imported before a DSN is opened, so nothing else needs the extra ``postgres``. Every key begins
with the namespace; only the statement that lists namespaces crosses them; no lock and no setting outlives a
transaction, so a transaction pooler may be used in between.
"""

from __future__ import annotations

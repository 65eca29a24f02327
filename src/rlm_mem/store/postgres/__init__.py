"""The PostgreSQL backend: chunks, index and audit log as rows of a database that many machines share.

``backend`` is the backend. A write goes through ``transaction``, ``rows`` and ``terms`` (``changes``, ``parts``); a
search through ``lookup``, ``term_lists`` and ``neighbours``; any other read through ``queries`` and ``files``.
``pool`` connects, ``routes`` and ``shards`` find the database of a namespace, ``schema`` and ``migrate`` have the
tables. ``integrity``, ``recount`` and ``maintenance`` serve maintenance.

Nothing here is imported before a DSN is opened, so nothing else needs the extra ``postgres``. Every key begins
with the namespace; only the statement that lists namespaces crosses them; no lock and no setting outlives a
transaction, so a transaction pooler may be used in between.
"""

from __future__ import annotations

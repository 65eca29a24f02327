"""The HTTP interface at `/api/v1`: everything that `Memory` does, typed, documented by OpenAPI, errors as problems.

`table` lists the endpoints; one module a group defines them with their types (`chunks`, `links`, `asking`, …);
`dispatch` holds requests to those types and answers, `openapi` writes the document from the same types. `paging`,
`etags`, `limits` and `sse` are what several groups share. Does not live here: who may come in (`server.http`), and any
decision about memory. Only this package and `server.http`, `server.run` need the extra `server`.
"""

from __future__ import annotations

from rlm_mem.server.api.app import api_app

__all__ = ["api_app"]

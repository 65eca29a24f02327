"""What programs and agents can do with a memory: each operation with its types, its function and its description.

One module a subject defines the operations (`chunks`, `links`, `asking`, …), `registry` lists them. Here too is what
the faces share: settings and the open memory (`context`, `state`), errors as problems (`problems`), live runs (`runs`),
news of changes (`changes`). No decision about memory is made here
(:mod:`rlm_mem.memory` makes them), and nothing of a protocol stands here: :mod:`rlm_mem.mcp`, :mod:`rlm_mem.http` and
:mod:`rlm_mem.dashboard` build on this package, which imports no framework.
"""

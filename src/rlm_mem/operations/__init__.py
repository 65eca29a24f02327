"""What programs and agents can do with a memory: each operation with its types, its function and its description.

Each subject has one module with its operations (`chunks`, `links`, `asking`, …); `registry` lists them. The package
also has what all interfaces share: settings and the open memory (`context`, `state`), errors as problems
(`problems`), live runs (`runs`), and change notices (`changes`). It makes no decisions about memory
(:mod:`rlm_mem.memory` does), and is independent of protocols: :mod:`rlm_mem.mcp`, :mod:`rlm_mem.http` and
:mod:`rlm_mem.dashboard` build on this package, which imports no framework.
"""

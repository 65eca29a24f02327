"""The operations on a memory for programs and agents, each with its types, function and description.

Each subject has one module with its operations (`chunks`, `links`, `asking`, …); `registry` lists them. The package
also contains what all interfaces share: settings and the open memory (`context`, `state`), errors as problems
(`problems`), live runs (`runs`), and change notices (`changes`). Decisions about memory are made in
:mod:`rlm_mem.memory`, not here. The package is independent of protocols and imports no framework: :mod:`rlm_mem.mcp`,
:mod:`rlm_mem.http` and :mod:`rlm_mem.dashboard` build on it.
"""

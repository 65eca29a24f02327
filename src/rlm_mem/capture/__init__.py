"""Automatic memory of coding agents: the namespace of a project, what a session keeps, and the context given back.

``projects`` gives each repository a namespace, ``transcripts`` reads what clients record, ``rules`` reads from a file
which sentences are kept, ``sessions`` keeps them and opens a case in the review queue, ``context``
selects what a session or a prompt is given. The hooks of each client are in ``rlm_mem.mcp.hooks``.
"""

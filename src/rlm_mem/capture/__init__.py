"""What coding agents remember by themselves: whose project it is, what of a session is kept, and what is shown again.

``projects`` gives each repository a namespace, ``transcripts`` reads what clients record, ``rules`` says in a file that
can be edited which sentences are kept, ``sessions`` keeps them and opens a case in the review queue, ``context`` finds
what a session or a prompt should be told. Nothing here knows a client's hooks; those are ``rlm_mem.mcp.hooks``.
"""

"""Who may do what on a server: permissions, tokens with scopes, and memories confined to a client's namespace.

`grants` defines what a client may do, `tokens` keeps the tokens of a brain, `oauth` reads those of an authorization
server.
"""

"""Access control of a server: permissions, tokens with scopes, and memories confined to a namespace.

`grants` defines permissions, `tokens` stores the tokens of a brain, `oauth` verifies those of an authorization server.
"""

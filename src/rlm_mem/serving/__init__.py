"""Runs the server: MCP, the HTTP interface and the dashboard as one application.

``run`` is what the command starts, ``app`` builds the application (``mcp_app`` at the first request of MCP),
``running`` serves it until it is drained, ``handover`` lets a new process take over, ``network`` protects it.
"""

"""Runs the server: MCP, the HTTP interface and the dashboard as one application."""

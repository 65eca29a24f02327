"""Running the server: MCP, the HTTP interface and the dashboard as one application on the loopback interface."""

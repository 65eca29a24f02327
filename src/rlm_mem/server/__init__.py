"""The server: the memory as tools for agents over MCP (stdio and HTTP), and what brings it into their "
"clients.

Lives here: tools, resources and prompts (`tools_*`, `resources`, `prompts`), how calls are decoded and answered
(`arguments`, `tool`, `service`), the transports (`mcp_server`, `http`, `run`), handles of open recalls (`handles`),
client configurations (`clients`, `client_files`), hooks of agents (`hooks`) and the doctor (`doctor`). Does not live
here: any decision about memory; every tool calls the public interface of :mod:`rlm_mem.memory`. Only `mcp_server`,
`http` and `run` may import the `mcp` package, which the extra `server` installs.
"""

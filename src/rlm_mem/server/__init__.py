"""The server: the memory for agents (MCP), for programs (HTTP) and for people (dashboard), on this machine only.

Lives here: tools, resources and prompts (`tools_*`, `resources`, `prompts`), how calls are decoded and answered
(`arguments`, `tool`, `service`), handles of open recalls (`handles`), the HTTP interface (`api`) with its errors and
answers (`problems`, `answers`), the pages (`dashboard`), what all parts of one server share (`state`, `runs`,
`changes`, `uploads`), who may come in (`guard`), the transports (`mcp_server`, `http`, `run`), client configurations
(`clients`, `client_files`), hooks of agents (`hooks`) and the doctor (`doctor`). Does not live here: any decision about
memory; everything calls the public interface of :mod:`rlm_mem.memory`. Only `mcp_server`, `http`, `guard`, `api`,
`dashboard`, `observed` and `run` may import what the extra `server` installs.
"""

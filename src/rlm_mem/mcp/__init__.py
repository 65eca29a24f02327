"""The memory for agents over the Model Context Protocol: tools, resources, prompts, and installation into clients.

Only the module `server` needs the extra `server`; `clients`, `hooks` and `doctor` serve the command line.
"""

"""The memory tool of Claude over a brain. With a client, pass ``tools=[tool]``; this example calls it directly."""

from rlm_mem import Memory

try:
    from rlm_mem.integrations.anthropic import MemoryTool
except ImportError:
    raise SystemExit(print("this example needs the SDK of Anthropic: pip install 'rlm-mem[llm]'")) from None

with Memory.open("brain") as memory:
    tool = MemoryTool(memory)
    # client.beta.messages.tool_runner(model="…", max_tokens=1024, messages=[…], tools=[tool]) calls it like this:
    tool.call({"command": "create", "path": "/memories/ines.md", "file_text": "Ines lives in Porto.\n"})
    print(tool.call({"command": "view", "path": "/memories"}))
    print(memory.recall("Where does Ines live?").content)  # its files are memories like any other

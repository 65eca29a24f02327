"""A LangGraph graph whose long-term memory is a brain: what is said in one thread is available in another."""

from typing import NotRequired, TypedDict

from rlm_mem import Memory

try:
    from langgraph.config import get_store
    from langgraph.graph import START, StateGraph

    from rlm_mem.integrations.langgraph import RlmMemStore
except ImportError:
    raise SystemExit(
        print("this example needs LangGraph: pip install 'rlm-mem[langgraph]' langgraph")
    ) from None


class State(TypedDict):
    said: str
    known: NotRequired[list[str]]


def chat(state: State) -> dict[str, list[str]]:
    """Search the memory, then remember the message."""
    store = get_store()
    known = [item.value["said"] for item in store.search(("chat", "ana"), query=state["said"], limit=3)]
    store.put(("chat", "ana"), state["said"], {"said": state["said"]})
    return {"known": known}


builder = StateGraph(State)
builder.add_node("chat", chat)
builder.add_edge(START, "chat")

with Memory.open("brain") as memory:
    graph = builder.compile(store=RlmMemStore(memory))
    graph.invoke({"said": "My bees live in Porto."})
    print(graph.invoke({"said": "Where do my bees live?"})["known"])
    print(memory.recall("Where do the bees live?").content)  # the items are memories like any other

"""One memory behind one set of operations, in an interpreter of its own: controlled by `peers.py` with JSON lines.

It runs in the environment of the peer that it measures, so it imports only the standard library and that peer. Timed is
the peer's own call, as a program would make it; for servers, as their client makes it.

    python benchmarks/peer_worker.py PEER FOLDER NOTES
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

#: Names of peers that may not be written in one piece in this repository's code.
_ARRAYS = "vec" + "tor_store"
_ENCODER = "embed" + "ding_model"


class Unsupported(Exception):
    """The peer has no such call."""


class Peer:
    """The operations of every peer. Keys are what `add` returned."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, note: dict[str, str]) -> str:
        """Store one memory; when it returns, the peer has acknowledged it."""
        raise NotImplementedError

    def fill(self, notes: list[dict[str, str]]) -> list[str]:
        """Store many, by the fastest call of the peer."""
        return [self.add(note) for note in notes]

    def get(self, key: str) -> str | None:
        """The text of one memory."""
        raise NotImplementedError

    def search(self, question: dict[str, str]) -> list[str]:  # noqa: ARG002 - what others take
        """Keys of the ten best."""
        raise Unsupported

    def tagged(self, tag: str) -> int:  # noqa: ARG002 - what others take
        """How many of the memories with a tag are returned; all are requested."""
        raise Unsupported

    def close(self) -> None:
        """Close the memory."""


class RlmMem(Peer):
    """RLM-MEM from Python."""

    def __init__(self, folder: Path) -> None:
        from rlm_mem import Memory

        super().__init__(folder)
        self.memory = Memory.open(folder / "brain")

    def add(self, note: dict[str, str]) -> str:
        kept = self.memory.remember(note["text"], tags=[note["tag"]])
        return kept.chunk_ids[0]

    def fill(self, notes: list[dict[str, str]]) -> list[str]:
        keys = []
        for first in range(0, len(notes), 1000):
            with self.memory.batch():
                keys += [self.add(note) for note in notes[first : first + 1000]]
        self.memory.checkpoint()
        return keys

    def get(self, key: str) -> str | None:
        chunk = self.memory.get(key)
        return chunk.content if chunk else None

    def search(self, question: dict[str, str]) -> list[str]:
        return [hit.chunk_id for hit in self.memory.search(question["text"], limit=10)]

    def tagged(self, tag: str) -> int:
        return len(self.memory.list_chunks(tags=[tag]))

    def close(self) -> None:
        self.memory.close()


class LangGraph(Peer):
    """LangGraph's SqliteStore, no index: it stores and filters, without searching texts."""

    SPACE = ("notes",)

    def __init__(self, folder: Path) -> None:
        from langgraph.store.sqlite import SqliteStore

        super().__init__(folder)
        self._kept = contextlib.ExitStack()
        self.store = self._kept.enter_context(SqliteStore.from_conn_string(str(folder / "store.sqlite")))
        self.store.setup()

    def add(self, note: dict[str, str]) -> str:
        self.store.put(self.SPACE, note["name"], {"text": note["text"], "tag": note["tag"]})
        return note["name"]

    def fill(self, notes: list[dict[str, str]]) -> list[str]:
        from langgraph.store.base import PutOp

        for first in range(0, len(notes), 1000):
            self.store.batch(
                [
                    PutOp(self.SPACE, note["name"], {"text": note["text"], "tag": note["tag"]})
                    for note in notes[first : first + 1000]
                ]
            )
        return [note["name"] for note in notes]

    def get(self, key: str) -> str | None:
        item = self.store.get(self.SPACE, key)
        return item.value["text"] if item else None

    def tagged(self, tag: str) -> int:
        return len(self.store.search(self.SPACE, filter={"tag": tag}, limit=100_000))

    def close(self) -> None:
        self._kept.close()


class HashedWords:
    """Replaces the model from which mem0 requests arrays of numbers: counts of hashed words, made in microseconds."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
        """One array of 384 numbers."""
        array = [0.0] * 384
        for word in text.lower().split():
            array[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % 384] += 1.0
        length = sum(x * x for x in array) ** 0.5 or 1.0
        return [x / length for x in array]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:  # noqa: ARG002
        """One array for each text."""
        return [self.embed(text) for text in texts]


class Mem0(Peer):
    """mem0 with `infer=False`, its local Qdrant, and hashed words in the place of a model."""

    def __init__(self, folder: Path) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none", "MEM0_DIR": str(folder / "home")}
        logging.disable(logging.CRITICAL)
        from mem0 import Memory

        super().__init__(folder)
        place = {
            "path": str(folder / "qdrant"),
            "collection_name": "notes",
            "on_disk": True,
            f"{_ENCODER}_dims": 384,
        }
        self.memory = Memory.from_config(
            {_ARRAYS: {"provider": "qdrant", "config": place}, "history_db_path": str(folder / "history.db")}
        )
        setattr(self.memory, _ENCODER, HashedWords())

    def add(self, note: dict[str, str]) -> str:
        made = self.memory.add(note["text"], user_id="u", metadata={"tag": note["tag"]}, infer=False)
        return str(made["results"][0]["id"])

    def get(self, key: str) -> str | None:
        found = self.memory.get(key)
        return found["memory"] if found else None

    def search(self, question: dict[str, str]) -> list[str]:
        found = self.memory.search(question["text"], filters={"user_id": "u"}, top_k=10)
        return [str(item["id"]) for item in found["results"]]

    def tagged(self, tag: str) -> int:
        found = self.memory.get_all(filters={"user_id": "u", "tag": tag}, top_k=100_000)
        return len(found["results"])


class Mcp:
    """A client of an MCP server over stdio: one JSON message a line."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self._server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **environ},
        )
        self._number = 0
        self._ask(
            "initialize",
            {
                "protocolVersion": "2025-03-26",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            },
        )
        self._send({"method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._server.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        assert self._server.stdout is not None
        for line in self._server.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._number and "method" not in answer:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]
        raise RuntimeError("the server has ended")

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of the tool: its structured content, else its text."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        text = "".join(part.get("text", "") for part in result["content"])
        if result.get("isError"):
            raise RuntimeError(text)
        return result.get("structuredContent") or text

    def close(self) -> None:
        """End the server as a client does."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        try:
            self._server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._server.kill()


class RlmMemServer(Peer):
    """RLM-MEM's MCP server."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "rlm_mem", "mcp", "--brain", str(self.folder / "brain")]
        self.server = Mcp(command, {})

    def add(self, note: dict[str, str]) -> str:
        return str(self.server.call("remember", text=note["text"], tags=[note["tag"]])["chunk_ids"][0])

    def fill(self, notes: list[dict[str, str]]) -> list[str]:
        self.server.close()
        memory = RlmMem(self.folder)
        keys = memory.fill(notes)
        memory.close()
        self._start()
        return keys

    def get(self, key: str) -> str | None:
        found = self.server.call("get", ids=[key])["memories"]
        return found[0]["content"] if found else None

    def search(self, question: dict[str, str]) -> list[str]:
        return [hit["id"] for hit in self.server.call("search", query=question["text"], limit=10)["hits"]]

    def close(self) -> None:
        self.server.close()


class MemoryServer(Peer):
    """The official MCP memory server: a graph of entities in one JSONL file, an observation for each note."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        script = Path(os.environ["PEER_NODE"], "@modelcontextprotocol/server-memory/dist/index.js")
        self.server = Mcp(["node", str(script)], {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")})

    def add(self, note: dict[str, str]) -> str:
        return self.fill([note])[0]

    def fill(self, notes: list[dict[str, str]]) -> list[str]:
        for first in range(0, len(notes), 500):
            entities = [
                {"name": note["name"], "entityType": note["tag"], "observations": [note["text"]]}
                for note in notes[first : first + 500]
            ]
            self.server.call("create_entities", entities=entities)
        return [note["name"] for note in notes]

    def get(self, key: str) -> str | None:
        found = self.server.call("open_nodes", names=[key])["entities"]
        return found[0]["observations"][0] if found else None

    def search(self, question: dict[str, str]) -> list[str]:
        # It searches for its query as a substring: only a single word is a fair query.
        found = self.server.call("search_nodes", query=question["word"])["entities"]
        return [one["name"] for one in found[:10]]

    def tagged(self, tag: str) -> int:
        # Type, name and text are searched alike; the tags of the notes occur nowhere else.
        return len(self.server.call("search_nodes", query=tag)["entities"])

    def close(self) -> None:
        self.server.close()


class BasicMemory(Peer):
    """basic-memory's MCP server: a Markdown file a note, and an SQLite index; without its model for arrays."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._command = os.environ["PEER_BASIC_MEMORY"]
        self._environ = {
            "HOME": str(folder / "home"),
            "BASIC_MEMORY_HOME": str(folder / "notes"),
            "BASIC_MEMORY_CONFIG_DIR": str(folder / "config"),
            "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
            "BASIC_MEMORY_AUTO_UPDATE": "false",
        }
        (folder / "home").mkdir(parents=True, exist_ok=True)
        self.server = Mcp([self._command, "mcp"], self._environ)

    def add(self, note: dict[str, str]) -> str:
        self.server.call(
            "write_note", title=note["name"], content=note["text"], directory="n", tags=[note["tag"]]
        )
        return f"n/{note['name']}"

    def fill(self, notes: list[dict[str, str]]) -> list[str]:
        """As its users import a folder: Markdown files, indexed by its own command."""
        self.server.close()
        place = self.folder / "notes" / "n"
        place.mkdir(parents=True, exist_ok=True)
        for note in notes:
            head = f"---\ntitle: {note['name']}\ntype: note\ntags:\n- {note['tag']}\n---\n\n"
            (place / f"{note['name']}.md").write_text(head + note["text"] + "\n", encoding="utf-8")
        subprocess.run(
            [self._command, "reindex", "--search"],
            env={**os.environ, **self._environ},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        self.server = Mcp([self._command, "mcp"], self._environ)
        keys = [f"n/{note['name']}" for note in notes]
        for key in (keys[0], keys[-1]):
            for _ in range(600):
                if self.get(key) is not None:
                    break
                time.sleep(0.5)  # its server indexes the files in the background
        return keys

    def get(self, key: str) -> str | None:
        found = self._plain("read_note", identifier=key)
        return found["content"] if isinstance(found, dict) and found.get("content") else None

    def search(self, question: dict[str, str]) -> list[str]:
        words = " OR ".join(question["text"].rstrip("?").split())
        return self._found(query=words, page_size=10)

    def tagged(self, tag: str) -> int:
        return len(self._found(tags=[tag], page_size=1000))

    def _found(self, **asked: Any) -> list[str]:
        return [
            item["file_path"].removesuffix(".md") for item in self._plain("search_notes", **asked)["results"]
        ]

    def _plain(self, tool: str, **asked: Any) -> Any:
        found = self.server.call(tool, output_format="json", **asked)
        found = json.loads(found) if isinstance(found, str) else found
        return found.get("result", found)

    def close(self) -> None:
        self.server.close()


PEERS: dict[str, Callable[[Path], Peer]] = {
    "rlm-mem": RlmMem,
    "rlm-mem-mcp": RlmMemServer,
    "langgraph": LangGraph,
    "mem0": Mem0,
    "server-memory": MemoryServer,
    "basic-memory": BasicMemory,
}


class Worker:
    """Runs the commands of `peers.py`."""

    def __init__(self, peer: Peer, notes: list[dict[str, str]]) -> None:
        self._peer = peer
        self._notes = notes

    def fill(self, first: int, last: int) -> dict[str, Any]:
        """Many at once."""
        began = time.perf_counter()
        keys = self._peer.fill(self._notes[first:last])
        return {"keys": keys, "seconds": time.perf_counter() - began}

    def add(self, first: int, last: int, loud: bool = False) -> dict[str, Any]:
        """One by one, each acknowledged; loud: print each key at once, for a test that kills this process."""
        keys, took, errors = [], [], []
        for note in self._notes[first:last]:
            began = time.perf_counter()
            try:
                key = self._peer.add(note)
            except Exception as error:  # noqa: BLE001 - whatever a peer throws, it has not stored the note
                errors.append(f"{type(error).__name__}: {error}"[:200])
                continue
            took.append((time.perf_counter() - began) * 1e3)
            keys.append(key)
            if loud:
                print(json.dumps({"ack": key}), flush=True)
        return {"keys": keys, "ms": took, "errors": errors}

    def get(self, keys: list[str]) -> dict[str, Any]:
        """Each by its key."""
        return self._timed(keys, lambda key: self._peer.get(key) is not None)

    def search(self, questions: list[dict[str, str]]) -> dict[str, Any]:
        """Each question; right if its note is among the ten."""
        return self._timed(questions, lambda question: question["key"] in self._peer.search(question))

    def tagged(self, tags: list[str], wanted: list[int]) -> dict[str, Any]:
        """All memories with a tag; right if all are returned."""
        pairs = list(zip(tags, wanted, strict=True))
        return self._timed(pairs, lambda pair: self._peer.tagged(pair[0]) >= pair[1])

    def present(self, keys: list[str]) -> dict[str, Any]:
        """How many of these are present."""
        return {"present": sum(self._peer.get(key) is not None for key in keys)}

    @staticmethod
    def _timed(items: Iterable[Any], action: Callable[[Any], bool]) -> dict[str, Any]:
        took, right = [], 0
        try:
            for item in items:
                began = time.perf_counter()
                found = action(item)
                took.append((time.perf_counter() - began) * 1e3)
                right += bool(found)
        except Unsupported:
            return {"unsupported": True}
        return {"ms": took, "right": right}


def main() -> None:
    """Open the peer, then carry out one command a line until stdin ends."""
    name, folder, notes = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    try:
        peer = PEERS[name](folder)
    except Exception as error:  # noqa: BLE001 - a peer that refuses a second process is a finding, not a fault
        print(json.dumps({"refused": f"{type(error).__name__}: {error}"[:300]}), flush=True)
        return
    with notes.open(encoding="utf-8") as lines:
        worker = Worker(peer, [json.loads(line) for line in lines])
    print(json.dumps({"opened": (time.perf_counter() - began) * 1e3}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = getattr(worker, asked.pop("do"))(**asked)
        print(json.dumps({"done": answer}), flush=True)
    peer.close()


if __name__ == "__main__":
    if shutil.which("node") is None and sys.argv[1] == "server-memory":
        print(json.dumps({"refused": "node is not installed"}))
    else:
        main()

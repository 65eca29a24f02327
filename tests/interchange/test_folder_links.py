"""Links in the text of a folder's documents become links between their chunks, and stay in step with the files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlm_mem.interchange import folder_sync
from rlm_mem.interchange.folders import sync_folder
from rlm_mem.interchange.importing import import_source
from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore

GATE = "The gate is green, see [[Boat]]."
BOAT = "The boat is blue."


def write(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def linked(store: ChunkStore) -> dict[str, list[str]]:
    """The files that each file links to; of a target of several chunks, with the beginning of the chunk."""
    chunks = {one.id: one for one in store.iter_chunks()}
    found: dict[str, list[str]] = {}
    for chunk in chunks.values():
        for link in chunk.links:
            if link.type == "refers_to":
                about = chunks[link.target_id].metadata
                place = about.provenance
                shown = place["path"] + (f": {chunks[link.target_id].content[:8]}" if "part" in place else "")
                found.setdefault(chunk.metadata.provenance["path"], []).append(shown)
    return {path: sorted(targets) for path, targets in sorted(found.items())}


def test_links_lead_to_the_file_that_they_name(store: ChunkStore, tmp_path: Path) -> None:
    ferry = "ships/old ferry (1950).txt"
    cases = {
        "[[Boat]]": ["ships/Boat.md"],
        "[[boat]] and [[ships/boat.md|the boat]] and ![[Boat#Deck]]": ["ships/Boat.md"],
        "| [[Boat\\|the boat]] |": ["ships/Boat.md"],
        "[[key]]": ["key.md"],
        "[the boat](ships/Boat.md) and [key](./key.md#Spare)": ["key.md", "ships/Boat.md"],
        '[the ferry](ships/old%20ferry%20(1950).txt "Our ferry")': [ferry],
        f"[the ferry](<{ferry}>)": [ferry],
        "[a boat](Boat.md)": ["ships/Boat.md"],
        "[up](../key.md), [web](https://e.org/key.md), [it](#key), [[#Key]] and [[none]]": [],
        "[elsewhere](old/ships/Boat.md)": [],
        "Code:\n\n```\n[[Boat]]\n```\n": [],
        "[[case 11]] and [myself](case%2011.md)": [],
        "[[The Tub]] and [[old tub#Deck|her]] and [[Key]]": ["key.md", "ships/Boat.md"],
        "[[CAFÉ]]": ["cafe\u0301.md"],
        "[[quay 7/b]] and [it](Ann.md)": ["pier.md"],
    }
    texts = {"ships/Boat.md": f"---\naliases: [the tub, Old Tub, key]\n---\n{BOAT}"}
    texts |= {"cafe\u0301.md": "It is closed."}
    texts |= {"pier.md": "---\nalias: Quay 7/B, Ann\n---\nThe pier is long."}
    texts |= {"key.md": "Brass.", "ships/key.md": "Iron.", ferry: "The ferry is rusty."}
    texts |= {f"case {number}.md": text for number, text in enumerate(cases)}
    sync_folder(store, write(tmp_path / "notes", texts))
    wanted = {f"case {number}.md": targets for number, targets in enumerate(cases.values()) if targets}
    assert linked(store) == wanted


def test_links_follow_an_alias_that_another_document_gets(store: ChunkStore, tmp_path: Path) -> None:
    texts = {
        "ann.md": "---\naliases: [The Boss]\n---\nAnn leads.",
        "bo.md": "Bo bakes.",
        "a.md": "Ask [[the boss|her]].",
    }
    folder = write(tmp_path / "vault", texts)
    report = import_source(store, folder)
    assert report.documents is not None and report.documents.chunks_linked == 1
    assert linked(store) == {"a.md": ["ann.md"]}
    write(folder, {"ann.md": "Ann left.", "bo.md": "---\naliases:\n- The Boss\n---\nBo leads."})
    import_source(store, folder)
    assert linked(store) == {"a.md": ["bo.md"]}


def test_a_link_to_a_heading_leads_to_the_chunk_with_it(store: ChunkStore, tmp_path: Path) -> None:
    harbour = (
        "# Harbour\n\n" + "Its walls are long. " * 150 + "\n\n## The keys\n\nThey hang behind the clock."
    )
    texts = {"harbour.md": harbour, "a.md": "[[harbour#The keys]]", "b.md": "[keys](harbour.md#the-keys)"}
    texts |= {"c.md": "[[harbour#Gone]]", "d.md": "See [[harbour]]."}
    sync_folder(store, write(tmp_path / "notes", texts))
    first, keys = ["harbour.md: # Harbou"], ["harbour.md: Its wall"]
    assert linked(store) == {"a.md": keys, "b.md": keys, "c.md": first, "d.md": first}


def test_links_stay_in_step_with_the_files(store: ChunkStore, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", {"gate.md": GATE})
    assert sync_folder(store, folder).chunks_linked == 0
    write(folder, {"boat.md": BOAT})
    assert sync_folder(store, folder).chunks_linked == 1, "the target appears"
    assert linked(store) == {"gate.md": ["boat.md"]}
    assert sync_folder(store, folder).change is None
    write(folder, {"boat.md": "The boat is red."})
    sync_folder(store, folder)
    (gate,) = [one for one in store.iter_chunks() if one.metadata.provenance["path"] == "gate.md"]
    (target,) = [link.target_id for link in gate.links if link.type == "refers_to"]
    assert store.get_many([target])[target].content == "The boat is red.", "it leads to the present text"
    (folder / "boat.md").rename(folder / "ship.md")
    assert sync_folder(store, folder).renamed == [("boat.md", "ship.md")]
    assert linked(store) == {}, "no file has the name now"
    write(folder, {"gate.md": "The gate is green, see [[Ship]]."})
    sync_folder(store, folder)
    assert linked(store) == {"gate.md": ["ship.md"]}
    (folder / "ship.md").unlink()
    gone = sync_folder(store, folder)
    assert linked(store) == {}
    assert gone.change is not None
    Memory(store).undo(change=gone.change)
    assert linked(store) == {"gate.md": ["ship.md"]}, "one undo takes back both"
    write(folder, {"ship.md": "The boat is red."})
    sync_folder(store, folder)
    assert linked(store) == {"gate.md": ["ship.md"]}


def test_links_made_by_hand_stay(store: ChunkStore, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", {"gate.md": GATE, "boat.md": BOAT, "key.md": "The key is brass."})
    sync_folder(store, folder)
    ids = {one.metadata.provenance["path"]: one.id for one in store.iter_chunks()}
    store.add_link(ids["gate.md"], ids["key.md"], "refers_to", 0.4, "it opens the gate")
    (folder / "boat.md").unlink()
    sync_folder(store, folder)
    assert linked(store) == {"gate.md": ["key.md"]}


def test_a_sync_that_was_ended_before_its_links_is_completed_by_the_next(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "notes", {"gate.md": GATE, "boat.md": BOAT})

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(folder_sync, "relinked", killed)
        sync_folder(store, folder)
    assert linked(store) == {}
    assert sync_folder(store, folder).unchanged == 2
    assert linked(store) == {"gate.md": ["boat.md"]}


def test_an_imported_vault_has_links_and_a_copy_of_it_its_own(store: ChunkStore, tmp_path: Path) -> None:
    vault = write(tmp_path / "vault", {"gate.md": GATE, "boat.md": BOAT})
    write(vault, {".obsidian/app.json": "{}"})
    import_source(store, vault)
    shutil.copytree(vault, tmp_path / "copy")
    sync_folder(store, tmp_path / "copy")
    conversations = {one.id: one.metadata.conversation_id for one in store.iter_chunks()}
    ends = [
        (Path(str(conversations[one.id])).parent, Path(str(conversations[link.target_id])).parent)
        for one in store.iter_chunks()
        for link in one.links
        if link.type == "refers_to"
    ]
    assert len(ends) == 2
    assert all(source == target for source, target in ends)

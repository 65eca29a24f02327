"""The contract of importers, as pytest tests: an importer claims only its own files, and no file crashes an import."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from rlm_mem.config import Config
from rlm_mem.interchange.detection import FORMATS, Detector, format_named
from rlm_mem.interchange.format import HEAD_BYTES, Claim, FileHead, Format
from rlm_mem.interchange.importing import import_source
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check

_FOREIGN: Mapping[str, bytes] = {
    "empty.txt": b"",
    "notes.md": b"# Shopping\n\nBread, butter and a walnut cake for Saturday.\n",
    "with_header.md": b"---\ntitle: Plan\ntags: [a, b]\n---\nThe plan is to plant a walnut.\n",
    "chunk.md": b'---\nid: chunk-2026-02-10-a1b2c3d4\ntype: note\ncreated_at: "2026-02-10T21:37:00.000000Z"\n---\nx\n',
    "meridian.md": b"# Title\n\n**Created:** 2026-01-01\n**Category:** x\n\n---\n\nText.\n",
    "Humor Slider.md": b"# Humor Slider\n\n## Range\n\n0-100\n",
    "conversations.json": json.dumps(
        [{"title": "t", "mapping": {"a": {"message": None, "parent": None}}, "current_node": "a"}]
    ).encode(),
    "claude.json": json.dumps([{"uuid": "u", "name": "n", "chat_messages": []}]).encode(),
    "messages.json": json.dumps([{"role": "user", "content": "The key is brass."}]).encode(),
    "session.jsonl": b'{"sessionId":"s","type":"user","message":{"role":"user","content":"hi"}}\n',
    "messages.jsonl": b'{"role":"user","content":"The key is brass."}\n',
    "memory.jsonl": b'{"id":"m","scope":"user_global","content":"x"}\n',
    "chunk-2026-02-10-a1b2c3d4.json": b'{"id":"chunk-2026-02-10-a1b2c3d4","content":"x","type":"note"}',
    "package.json": b'{"name":"x","version":"1.0.0"}',
    "program.py": b"print('hello')\n",
    "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "table.csv": b"name,age\nAnn,3\n",
    "page.html": b"<!doctype html><title>x</title>",
    "feed.xml": b'<?xml version="1.0"?><rss/>',
}
"""Files of other formats, by name."""


class ImporterContract:
    """Tests of an importer; a subclass provides the fixtures ``importer`` and ``example``.

    Attributes:
        foreign: further files, name to content, that look like the format but are not.
        chunks: number of chunks imported from the example; None: at least one.
    """

    foreign: ClassVar[Mapping[str, bytes]] = {}
    chunks: ClassVar[int | None] = None

    @pytest.fixture
    def importer(self) -> Format:
        """Return the format to test; its package is installed, or it is built in."""
        raise NotImplementedError("define the fixture `importer` in your subclass of the suite")

    @pytest.fixture
    def example(self) -> tuple[str, bytes]:
        """Return the name and the bytes of a file as the program of the format writes it."""
        raise NotImplementedError("define the fixture `example` in your subclass of the suite")

    @pytest.fixture
    def store(self, tmp_path: Path) -> ChunkStore:
        """Return an empty store."""
        config = Config.load(None, environ={}, store={"durability": "normal"})
        return ChunkStore(tmp_path / "brain" / "memory", config=config)

    @pytest.fixture
    def source(self, tmp_path: Path, example: tuple[str, bytes]) -> Path:
        """Write the example to a file under its own name; return its path."""
        path = tmp_path / "source" / example[0]
        path.parent.mkdir(parents=True)
        path.write_bytes(example[1])
        return path

    # --- detection ----------------------------------------------------------------------------------------

    def test_it_is_found_by_its_name(self, importer: Format) -> None:
        """``--format NAME`` selects this format; its name is well-formed, and it has a description for reports."""
        assert format_named(importer.name).name == importer.name
        assert importer.name == importer.name.lower().strip()
        assert all(char.isalnum() or char == "-" for char in importer.name)
        assert importer.description

    def test_it_claims_its_own_file(self, importer: Format, source: Path, store: ChunkStore) -> None:
        """An import without ``--format`` reads the example as this format."""
        report = import_source(store, source, dry_run=True)
        assert report.formats == {importer.name: 1}, _problems(report)

    def test_it_claims_no_foreign_file(self, importer: Format, example: tuple[str, bytes]) -> None:
        """The importer claims no file of another format or of none, nor one that only shares its file extension."""
        own = Path(example[0]).suffix
        for name, data in {**_FOREIGN, **self.foreign}.items():
            if (
                name not in self.foreign
                and importer.name in FORMATS
                and _built_in(name, data) == importer.name
            ):
                continue  # this file is of the tested format
            claim = importer.sniff(FileHead(name, data[:HEAD_BYTES]))
            assert claim <= Claim.POSSIBLE, name
        claim_by_ending = importer.sniff(FileHead(f"picture{own}", _FOREIGN["picture.png"]))
        assert claim_by_ending <= Claim.POSSIBLE, f"a picture that is called picture{own}"

    def test_sniffing_takes_any_bytes(self, importer: Format, example: tuple[str, bytes]) -> None:
        """Sniffing half a file, an empty one or another encoding returns a claim, and never raises."""
        name, data = example
        for head in (
            b"",
            data[:1],
            data[: len(data) // 2],
            data[::-1],
            b"\xff\xfe" + data,
            bytes(256),
            b"\xc3",
        ):
            for called in (name, name.upper(), "x", "a/b/" + name):
                assert importer.sniff(FileHead(called, head)) in list(Claim)

    # --- reading ------------------------------------------------------------------------------------------

    def test_the_example_is_imported_without_a_problem_and_once(
        self, source: Path, store: ChunkStore
    ) -> None:
        """The content is stored with its origin; importing it again, with and without ``again``, adds nothing."""
        before = source.read_bytes()
        report = import_source(store, source)
        assert report.problems == []
        assert report.finished
        assert report.created == (self.chunks if self.chunks is not None else report.created)
        assert report.created > 0
        listed = _ids(store)
        assert len(listed) == report.created
        assert all(
            chunk.content.strip()
            for place, _ in store.namespaces()
            for chunk in store.iter_chunks(namespace=place)
        )
        assert import_source(store, source).created == 0
        assert import_source(store, source, again=True).created == 0
        assert _ids(store) == listed
        assert check(store) == []
        assert source.read_bytes() == before

    def test_a_dry_run_reports_what_an_import_does_and_writes_nothing(
        self, source: Path, store: ChunkStore
    ) -> None:
        """The figures of ``--dry-run`` equal those of the import that follows."""
        planned = import_source(store, source, dry_run=True)
        assert _ids(store) == []
        assert import_source(store, source).created == planned.created

    @pytest.mark.parametrize(
        "damage", ["empty", "cut", "binary", "nulls", "reversed", "nested", "long line", "not text"]
    )
    def test_a_hostile_file_is_reported(
        self, importer: Format, example: tuple[str, bytes], store: ChunkStore, tmp_path: Path, damage: str
    ) -> None:
        """For any content, the import finishes, reports the reason, and leaves a valid store."""
        name, data = example
        hostile = {
            "empty": b"",
            "cut": data[: len(data) * 2 // 3],
            "binary": bytes(range(256)) * 40,
            "nulls": data.replace(b" ", b"\0"),
            "reversed": data[::-1],
            "nested": b"[" * 50_000 + b"{" * 50_000 + b"<a>" * 10_000,
            "long line": data.splitlines()[0] + b"x" * 300_000,
            "not text": data + b"\xff\xfe\xfa\x80\xc3\x28",
        }[damage]
        path = tmp_path / "hostile" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(hostile)
        report = import_source(store, path, format=importer.name)
        assert report.finished
        assert report.problem_count or report.created, "nothing was imported, and no reason reported"
        assert all(problem.where and problem.reason for problem in report.problems)
        assert not any("Traceback" in problem.reason for problem in report.problems)
        assert len(_ids(store)) == report.created
        assert check(store) == []
        if damage == "empty":
            assert report.created == 0


def _built_in(name: str, data: bytes) -> str | None:
    found = Detector().detect(FileHead(name, data))
    return found.name if found else None


def _ids(store: ChunkStore) -> list[tuple[str, str]]:
    """The ids of all chunks with their namespaces: a format may have namespaces of its own."""
    return [
        (place, chunk_id)
        for place, _ in store.namespaces()
        for chunk_id in store.list_chunks(namespace=place)
    ]


def _problems(report: object) -> str:
    return "; ".join(f"{one.where}: {one.reason}" for one in getattr(report, "problems", []))

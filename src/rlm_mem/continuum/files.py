"""List, read and write the files of a brain's tiered memories.

They are stored in the brain folder or in rows of a database, depending on the store (``store.brain_files``).
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.chunk import format_time, from_epoch
from rlm_mem.continuum import places
from rlm_mem.continuum.frontmatter import edited, guarded, parse_yaml, render, split_blocks, split_one
from rlm_mem.continuum.schema import Frontmatter, validate
from rlm_mem.errors import InputError, InvalidMemory
from rlm_mem.merging import (
    MEMORIES_IN_CONFLICT,
    MERGE_CONFLICT,
    NOT_FETCHED,
    in_conflict,
    is_pointer,
    json_fault,
    sides,
)
from rlm_mem.record import FrozenRecord
from rlm_mem.store.core.brain_files import checked_name, mirror_id

if TYPE_CHECKING:
    from rlm_mem.store.core.brain_files import BrainFiles
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.files import Signature

_logger = logging.getLogger("rlm_mem.continuum")

_SYSTEM = "system"
_MAX_OVERLOOKED = 1_000_000  # bytes
_FREQUENCY = re.compile(r"^memory_frequency[ \t]*:", re.MULTILINE)
_CODE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


class TieredMemory(FrozenRecord, frozen=True):
    """One tiered memory as stored in its file.

    Attributes:
        file: path relative to the namespace's folder, with forward slashes.
        block: id within a file of several memories, else None.
        text: its text in the file: the block, or the whole file.
        raw: every field, unknown ones included.
        kind: name of its kind, a key of ``places.KINDS``.
        chunk_id: the chunk that mirrors it.
        undated: whether ``created_at`` is missing and the time of the file is used instead.
    """

    file: str
    block: str | None
    kind: str
    meta: Frontmatter
    raw: dict[str, Any]
    header: str
    body: str
    text: str
    chunk_id: str
    undated: bool = False

    @property
    def key(self) -> str:
        """The memory's identifier: the file, with ``#`` and the block if there is one."""
        return self.file if self.block is None else f"{self.file}#{self.block}"

    @property
    def title(self) -> str:
        """The first line of the body, without heading marks."""
        for line in self.body.splitlines():
            if line.strip("#- \t\r"):
                return line.strip("# \t\r")
        return self.block or self.file.rpartition("/")[2]

    def changed(self, changes: dict[str, Any], body: str | None = None) -> str:
        """The memory's text with some fields changed (None removes a field) and, optionally, another body."""
        header = edited(self.header, changes, self.key)
        end = "\r\n" if "\r\n" in self.header else "\n"
        if self.block is None:
            before, _, rest = split_one(self.text) or (f"---{end}", "", f"---{end}{self.body}")
            return before + header + (rest if body is None else f"---{end}{body}")
        return f"---{end}{header}---{end}{self.body if body is None else guarded(body)}"


class InvalidEntry(FrozenRecord, frozen=True):
    """An invalid file or memory; it is not changed.

    ``code`` is one of ``store.core.findings.CODES``.
    """

    file: str
    message: str
    code: str = "tiered-memory"


def new_text(fields: dict[str, Any], body: str) -> str:
    """The text of a new memory; empty fields are omitted."""
    return f"---\n{render(fields, Frontmatter.__struct_fields__)}---\n{guarded(body)}"


class MemoryFiles:
    """Files of the memories of one namespace.

    Args:
        store: the chunk store of the same brain; its namespace, settings and durability apply.
    """

    def __init__(self, store: ChunkStore) -> None:
        self.stored = store.files
        self.namespace = store.namespace
        self._task_types = store.config.continuum.task_types

    # --- raw files ---------------------------------------------------------------------------------------------------

    def exists(self, file: str) -> bool:
        """Whether a file exists; names that begin with ``archive/`` are in the archive."""
        return self.stored.exists(_checked_path(file))

    def read(self, file: str) -> str | None:
        """The text of a file, line ends unchanged; None if it is missing. Raises InvalidMemory if it is not UTF-8."""
        data = self.stored.read(_checked_path(file))
        return None if data is None else _text(data, file)

    def names(self) -> list[str]:
        """Names of all files that may contain memories, sorted."""
        return sorted(self.signatures())

    def signatures(self) -> dict[str, Signature]:
        """Signatures of all files that may contain memories; a signature changes with its file."""
        found = {}
        for single in places.SINGLES:
            signature = self.stored.signature(single)
            if signature is not None:
                found[single] = signature
        for folder in places.FOLDERS:
            for file, signature in self.stored.signatures(folder).items():
                if file.endswith((".md", ".json")):
                    found[file] = signature
        return found

    def overlooked(self) -> Iterator[InvalidEntry]:
        """Files that nothing reads because of their name or folder, though they begin as a memory does."""
        present = self.stored.signatures(_SYSTEM)
        for folder in places.FOLDERS:
            present |= self.stored.signatures(folder, recursive=True)
        known = self.signatures()
        names = [name for name, one in present.items() if name not in known and one.size <= _MAX_OVERLOOKED]
        for file, data in self.stored.contents(names):
            parts = split_one(data.decode("utf-8", "replace"))
            if parts is not None and _FREQUENCY.search(parts[1]):
                yield InvalidEntry(file, f"{file}: a tiered memory under a name that is not read: rename it")

    # --- memories ----------------------------------------------------------------------------------------------------

    def entries(
        self, problems: list[InvalidEntry] | None = None, kinds: tuple[str, ...] = ()
    ) -> Iterator[TieredMemory]:
        """Every valid memory.

        Args:
            problems: list to which invalid entries are added; None: they are logged.
            kinds: kinds of memories to return; empty: all.
        """
        selected = []
        for file in self.names():
            try:
                if not kinds or places.kind_of(file).name in kinds:
                    selected.append(file)
            except InvalidMemory as error:
                _report_problem(problems, file, error)
        for file, data in self.stored.contents(selected):
            try:
                yield from self._in_text(file, _text(data, file), problems)
            except InvalidMemory as error:
                _report_problem(problems, file, error)

    def in_file(self, file: str, problems: list[InvalidEntry] | None = None) -> list[TieredMemory]:
        """The memories of one file, if it exists; raises InvalidMemory if a file of a single memory is invalid."""
        text = self.read(file)
        return [] if text is None else self._in_text(file, text, problems)

    def _in_text(self, file: str, text: str, problems: list[InvalidEntry] | None) -> list[TieredMemory]:
        if not places.kind_of(file).many:
            return [self.parse(file, None, text)]
        found: list[TieredMemory] = []
        blocks = split_blocks(text)
        if in_conflict(text):  # only what both sides agree on
            _report_problem(problems, file, InvalidMemory(f"{file}: {MEMORIES_IN_CONFLICT}"))
            ours, theirs = map(split_blocks, sides(text))
            agreed = {block.rstrip() for block in theirs}
            blocks = [block for block in ours if block.rstrip() in agreed]
        elif (named := len(_FREQUENCY.findall(_CODE.sub("", text)))) > len(blocks):
            # By an editor that makes "---" a dash.
            message = f"{file}: {named} memories have memory_frequency, but only {len(blocks)} begin with a line ---"
            _report_problem(problems, file, InvalidMemory(message))
        for block in blocks:
            try:
                entry = self.parse(file, "", block)
                if any(entry.block == other.block for other in found):
                    raise InvalidMemory(f"{file}: id: {entry.block!r} is used twice in this file")
                found.append(entry)
            except InvalidMemory as error:
                _report_problem(problems, file, error)
        return found

    def get(self, key: str) -> TieredMemory | None:
        """The memory with this key (``file`` or ``file#block``), or None; raises InvalidMemory if it is invalid."""
        file, _, block = key.partition("#")
        return next((entry for entry in self.in_file(file) if (entry.block or "") == block), None)

    def united(self, file: str) -> str | None:
        """The text of a file that git left in conflict, with the memories of both sides; None if it needs a person.

        A memory that both sides changed stays in conflict, alone, and so does the text before the first memory.
        """
        problems: list[InvalidEntry] = []
        try:
            text = self.read(file) or ""
            if not in_conflict(text) or not places.kind_of(file).many:
                return None
            halves = sides(text)
            ours, theirs = (
                {one.block: one.text.rstrip() for one in self._in_text(file, half, problems)}
                for half in halves
            )
        except InvalidMemory:
            return None
        first, second = (
            half.partition(next(iter(blocks.values()), "\0"))[0].rstrip()
            for half, blocks in zip(halves, (ours, theirs), strict=True)
        )
        preamble = _both(first, second) if first and second else first or second
        united = f"{preamble}\n\n" if preamble else ""
        for name, other in (ours | theirs).items():
            block = ours.get(name, other)
            united += f"{block if name not in theirs else _both(block, other)}\n\n"
        return None if problems or united == text else united

    def parse(self, file: str, block: str | None, text: str) -> TieredMemory:
        """A memory from its text: the whole file, or (``block`` not None) one block; raises InvalidMemory."""
        kind = places.kind_of(file)
        if in_conflict(text):  # a conflict in the body would store both versions
            raise InvalidMemory(f"{file}: {MERGE_CONFLICT}")
        if file.endswith(".json"):
            raw, header, body = self._json(file, text)
        else:
            parts = split_one(text)
            if parts is None:
                raise InvalidMemory(f"{file}: front matter: every memory must begin with it")
            header, body = parts[1], parts[2].split("\n", 1)[-1] if "\n" in parts[2] else ""
            raw = parse_yaml(header, file)
        name = str(raw.get("id") or _default_id(body)) if block is not None else None
        where = file if name is None else f"{file}#{name}"
        meta = validate(raw, where, self._task_types)
        if meta.memory_frequency not in kind.tiers:
            raise InvalidMemory(
                f"{where}: memory_frequency: must be {' or '.join(kind.tiers)} in this file, "
                f"not {meta.memory_frequency}"
            )
        undated = meta.created_at is None
        if undated:
            meta = msgspec.structs.replace(meta, created_at=self._file_time(file))
        chunk_id = mirror_id(self.namespace, file, name)
        return TieredMemory(file, name, kind.name, meta, raw, header, body, text, chunk_id, undated)

    def _json(self, file: str, text: str) -> tuple[dict[str, Any], str, str]:
        try:
            data = msgspec.json.decode(text.encode("utf-8"))
        except msgspec.DecodeError as error:
            raise InvalidMemory(f"{file}: {json_fault(text.encode(), error)}") from None
        except RecursionError:
            raise InvalidMemory(f"{file}: the JSON is nested too deeply") from None
        memory = data.get("_memory") if isinstance(data, dict) else None
        if not isinstance(memory, dict):
            raise InvalidMemory(f"{file}: _memory: a JSON file must have its front matter under this key")
        body = {name: value for name, value in data.items() if name != "_memory"}
        return memory, "", msgspec.json.format(msgspec.json.encode(body), indent=2).decode()

    def _file_time(self, file: str) -> str:
        signature = self.stored.signature(file)
        seconds = signature.mtime_ns / 1e9 if signature else 0.0
        return format_time(from_epoch(seconds))


def free_name(files: BrainFiles, name: str) -> str:
    """A name of a file that is not taken: this one, or with a number before its suffix."""
    base, _, suffix = name.rpartition(".")
    number = 2
    while files.exists(name):
        name, number = f"{base}.{number}.{suffix}", number + 1
    return name


def _both(ours: str, theirs: str) -> str:
    """One text, or both in conflict if they differ."""
    return ours if ours == theirs else f"<<<<<<< ours\n{ours}\n=======\n{theirs}\n>>>>>>> theirs"


def _text(data: bytes, file: str) -> str:
    if is_pointer(data):
        raise InvalidMemory(f"{file}: {NOT_FETCHED}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidMemory(f"{file}: byte {error.start} is not UTF-8") from None


def _checked_path(file: str) -> str:
    """The file name, validated; raises InvalidMemory for a path outside the folder."""
    try:
        return checked_name(file)
    except InputError:
        raise InvalidMemory(
            f"{file!r:.80} is not a path of a memory file", hint="rlm-mem tier list shows them"
        ) from None


def _report_problem(problems: list[InvalidEntry] | None, file: str, error: InvalidMemory) -> None:
    if problems is None:
        _logger.warning("%s", error)
    else:
        problems.append(InvalidEntry(file, str(error)))


def _default_id(body: str) -> str:
    """The id of a block written by hand without one, computed from its first line."""
    first = next((line for line in body.splitlines() if line.strip("# \t")), "")
    return f"entry-{hashlib.sha256(first.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"

"""`rlm-mem remember`: stores text, files, folders and stdin as chunks."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import rlm_mem
from rlm_mem.chunk import parse_time
from rlm_mem.cli import options, sources
from rlm_mem.cli.call import Call
from rlm_mem.cli.ids import full_ids
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.terminal import amount, note, one_line, print_text, progress, resumable
from rlm_mem.config import Config, stored_path
from rlm_mem.errors import InputError, NotFoundError, RlmMemError
from rlm_mem.interchange.places import Unreadable
from rlm_mem.interchange.reading import clean, json_lines
from rlm_mem.interchange.records import ImportProblem, conversation_of, file_conversation
from rlm_mem.own_process import until_stopped

if TYPE_CHECKING:
    from rlm_mem.interchange.report import FolderReport

_MAX_LISTED = 20
"""Maximum number of ids of a kind that are printed."""


class RememberCall(Call, frozen=True):
    """Options of `remember`."""

    file: Annotated[
        list[Path] | None,
        option("--file -f", "PATH", "Remember this file; repeatable.", parser=options.path),
    ] = None
    folder: Annotated[
        list[Path] | None,
        option(
            "--folder",
            "PATH",
            "Remember the text files below this folder, and sync them.",
            parser=options.path,
        ),
    ] = None
    pattern: Annotated[
        list[str] | None,
        option("--glob", "PATTERN", "With --folder: only matching names, for example '*.md'."),
    ] = None
    jsonl: Annotated[
        Path | None,
        option("--jsonl", "PATH", "Remember each line of this file, or of stdin (-): a JSON text or object."),
    ] = None
    conversation: options.Conversation = None
    tags: options.Tags = None
    kind: Annotated[
        str | None,
        option("--type", "TYPE", f"{options.TYPES} Default: by rules from the text."),
    ] = None
    confidence: Annotated[
        float | None, option("--confidence", "0..1", "How certain it is. Default: 0.7.")
    ] = None
    occurred_at: Annotated[
        str | None, option("--at", "TIME", "When it was said or happened (ISO 8601). Default: now.")
    ] = None
    replaces: Annotated[
        list[str] | None, option("--replaces", "ID", "A chunk that this text replaces; repeatable.")
    ] = None
    origin: options.Origin = None
    trust: options.Trust = None
    expires: Annotated[str | None, option("--expires", "TIME", "When it expires (ISO 8601).")] = None
    ttl: Annotated[
        str | None, option("--ttl", "TIME", "How long until it expires, such as 12h or 30d. Default: never.")
    ] = None
    again: Annotated[bool, flag("--again", "Store it even if nearly the same text is stored already.")] = (
        False
    )
    secrets: options.Secrets = None
    watch: Annotated[bool, flag("--watch", "With --folder: keep running, and keep the memory in sync.")] = (
        False
    )
    every: options.Every = 2.0
    known_as: Annotated[
        str | None,
        option(
            "--known-as",
            "NAME",
            "With --folder: the name of this folder in the memory, such as its former path.",
        ),
    ] = None
    archive_all: Annotated[
        bool, flag("--archive-all", "With --folder: archive its documents even if none exists any more.")
    ] = False
    dry_run: Annotated[bool, flag("--dry-run", "With --folder: only show what would happen.")] = False

    @property
    def stated(self) -> dict[str, Any]:
        """What the options state about every text, as arguments of ``Memory.remember`` and ``Memory.sync_folder``."""
        given = {
            "tags": self.tags,
            "confidence": self.confidence,
            "chunk_type": self.kind,
            "occurred_at": self.occurred_at,
            "secrets": self.secrets,
            "origin": self.origin,
            "trust": self.trust,
            "expires": self.expires,
            "ttl": self.ttl,
        }
        return {name: value for name, value in given.items() if value is not None}

    def texts(self, words: Sequence[str]) -> list[sources.InputText]:
        """Read the texts, except folders and JSON lines, and refuse options that do not apply to them."""
        for name, moment in (("--at", self.occurred_at), ("--expires", self.expires)):
            if moment is not None:
                parse_time(moment, name)
        folders = self.folder or []
        if self.jsonl is not None and (words or self.file or folders or self.replaces):
            raise InputError(
                "--jsonl cannot be combined with other texts",
                hint="leave out TEXT, --file, --folder and --replaces",
            )
        found = [] if self.jsonl is not None else _texts(self, words)
        if not (found or folders or self.jsonl):
            raise InputError(
                "there is nothing to remember", hint="give a text, --file, --folder, or pipe something in"
            )
        _check_sources(found, folders)
        for name in ("origin", "expires", "ttl"):
            if folders and getattr(self, name) is not None:
                raise InputError(
                    f"--{name} cannot be used with a folder",
                    hint="memories of a folder are kept as long as its files",
                )
        if self.replaces and (folders or len(found) != 1):
            raise InputError(
                "--replaces needs one text", hint="give exactly one text, which replaces the chunk"
            )
        if self.watch and (found or len(folders) != 1 or self.dry_run):
            raise InputError(
                "--watch needs one folder", hint="give --folder PATH, and no text, file or --dry-run"
            )
        if self.dry_run and (found or not folders):
            raise InputError("--dry-run needs a folder", hint="give --folder PATH, and no text or file")
        if self.known_as is not None and len(folders) != 1:
            raise InputError("--known-as needs one folder", hint="give --folder PATH once")
        return found


def remember(
    call: RememberCall,
    words: Annotated[list[str] | None, argument("[TEXT]", "The text. Default: stdin, also with -.")] = None,
) -> None:
    """Remember a text, split into chunks and linked with existing memories, or keep a folder in sync."""
    texts, folders, named = call.texts(words or []), call.folder or [], call.stated
    started = time.perf_counter()
    with nullcontext() if call.again else resumable(), call.writing(dry_run=call.dry_run) as memory:
        about_folder: dict[str, Any] = dict(
            named,
            patterns=tuple(call.pattern or ()),
            conversation_id=call.conversation,
            known_as=call.known_as,
            archive_all=call.archive_all,
        )
        if call.watch:
            _watch(call, memory, folders[0], about_folder)
            return
        if call.again:
            named["again"] = True
        if call.replaces:
            named["replaces"] = full_ids(memory, call.replaces)
        outcome = _Outcome()
        if call.jsonl is not None:
            about_lines = {"conversation_id": call.conversation, **named}
            _read_lines(memory, call.jsonl, about_lines, outcome, quiet=call.json)
        for source in texts:
            with progress("remembering", quiet=call.json) as update:
                outcome.add(_remember(memory, source, named, call.conversation, update))
        for one in folders:
            with progress("remembering", unit="files", quiet=call.json) as update:
                outcome.add_folder(
                    memory.sync_folder(one, dry_run=call.dry_run, progress=update, **about_folder)
                )
    if not call.printed_json(outcome.as_dict()):
        changes = not folders and not named.keys().isdisjoint(("tags", "chunk_type", "confidence"))
        _show(call, outcome, time.perf_counter() - started, dry_run=call.dry_run, changes=changes)
    if outcome.failed:
        raise typer.Exit(1)


def _check_sources(texts: Sequence[sources.InputText], folders: Sequence[Path]) -> None:
    """Refuse folders that do not exist, and texts without a visible character."""
    for folder in folders:
        if folder.is_file():
            raise InputError(
                f"{folder} is a file, not a folder", hint=f"rlm-mem remember --file {folder} remembers it"
            )
        if not folder.is_dir():
            raise NotFoundError(f"there is no folder {folder}")
    for source in texts:
        if not source.text.strip():
            where = f"{source.path} is empty" if source.path is not None else "the text is empty"
            raise InputError(
                f"{where}: there is nothing to remember", hint="give a text of at least one visible character"
            )


class _Outcome:
    """The results of all texts: chunk ids in order, tokens, and the files left out."""

    def __init__(self) -> None:
        self.chunk_ids: list[str] = []
        self.total_tokens = self.chunks_created = self.texts = 0
        self.replaced: list[str] = []
        self.proposed: list[str] = []
        self.quarantined: list[str] = []
        self.skipped: list[dict[str, str]] = []
        self.failed: list[dict[str, str]] = []
        self.folders: list[FolderReport] = []
        self.secrets: Counter[str] = Counter()
        self.hidden = False

    def add(self, result: rlm_mem.RememberResult) -> None:
        self.texts += 1
        self.chunk_ids += result.chunk_ids
        self.total_tokens += result.tokens
        self.chunks_created += result.created
        self.secrets.update(result.secrets.rules)
        self.replaced += result.replaced
        self.proposed += result.proposed
        self.quarantined += result.quarantined
        self.hidden = self.hidden or result.secrets.hidden  # one action applies to the whole command

    def add_folder(self, report: FolderReport) -> None:
        self.folders.append(report)
        self.texts += report.files
        self.chunk_ids += report.chunk_ids
        self.total_tokens += report.tokens
        self.chunks_created += report.chunks_created
        self.secrets.update(report.secrets)
        self.hidden = self.hidden or bool(report.secrets_hidden)
        failed = set(report.failed)
        for one in report.refused:
            row = {"path": f"{report.folder}/{one.where}", "reason": one.reason}
            (self.failed if one.where in failed else self.skipped).append(row)

    def as_dict(self) -> dict[str, Any]:
        found = {"success": not self.failed, **vars(self)}
        found["folders"] = [report.as_dict() for report in self.folders]
        found["secrets_hidden"] = self.secrets.total() if found.pop("hidden") else 0
        return found


def _texts(call: RememberCall, words: Sequence[str]) -> list[sources.InputText]:
    max_bytes = Config.load(call.place).ingest.max_content_bytes
    found = [sources.one_file(path, max_bytes) for path in call.file or ()]
    if words and words != ["-"]:
        found.append(sources.InputText(sources.typed(words)))
    elif words or not (call.file or call.folder):
        piped = sources.piped(max_bytes)
        if piped is not None and piped.strip():
            found.append(sources.InputText(piped))
    return found


def _read_lines(
    memory: rlm_mem.Memory, path: Path, named: dict[str, Any], outcome: _Outcome, *, quiet: bool
) -> None:
    """Remember the lines of a file, in large transactions; the lines before an invalid one are stored."""
    name = "stdin" if str(path) == "-" else _within(path)
    if name != "stdin":
        named = {"source": "import", "provenance": {"path": name}, **named}
    numbers: list[int] = []

    def items() -> Iterator[Mapping[str, Any] | InputError]:
        with sources.opened(path) as handle:
            for number, value in json_lines(handle):
                numbers.append(number)
                if isinstance(value, Unreadable):
                    yield InputError(str(value))
                elif isinstance(value, dict):
                    yield named | value
                elif isinstance(value, str):
                    yield named | {"text": value}
                else:
                    yield InputError(f"a text or an object was expected, not {type(value).__name__}")

    def refuse(place: int, error: RlmMemError) -> None:
        before = (
            "nothing was stored: "
            if place == 0
            else "the lines before it are stored, and will not be stored twice: "
        )
        error.message = f"{name}, line {numbers[place]}: {error.message}"
        error.hint = f"{before}correct it and repeat the command" + (f" ({error.hint})" if error.hint else "")
        raise error

    with progress("remembering", unit="texts", quiet=quiet) as update:
        for made in memory.remember_many(items(), progress=update, refused=refuse):
            outcome.add(made)
    if not outcome.texts:
        raise InputError(
            f"{name} is empty: there is nothing to remember", hint="give one JSON string or object per line"
        )


def _watch(call: RememberCall, memory: rlm_mem.Memory, folder: Path, named: dict[str, Any]) -> None:
    from rlm_mem.interchange.folders import watch_folder

    note(f"watching {folder}; Ctrl-C ends it")

    def show(report: FolderReport) -> None:
        call.report(report.as_dict(), lambda: show_folder(call, report))

    with until_stopped():
        watch_folder(memory.store, folder, seconds=call.every, on_report=show, **named)


def _within(path: Path) -> str:
    """Return the name of a file for its provenance, without the name of the user's home folder."""
    return clean(str(path) if _is_plain(path) else stored_path(os.path.abspath(path)))  # noqa: PTH100 - links are kept as named


def _is_plain(path: Path) -> bool:
    return not path.is_absolute() and ".." not in path.parts


def _remember(
    memory: rlm_mem.Memory,
    source: sources.InputText,
    named: dict[str, Any],
    conversation: str | None,
    update: Callable[[int, int], None],
) -> rlm_mem.RememberResult:
    """Remember one text; the chunks of a file form one conversation, by default named after its path."""
    if source.path is not None:
        path = source.path
        named = {**named, "source": "import", "provenance": {"path": _within(path)}}
        conversation = conversation or (
            conversation_of(str(path))
            if _is_plain(path)
            else file_conversation(memory.store, os.path.abspath(path))  # noqa: PTH100 - links are kept as named
        )
    return memory.remember(source.text, conversation_id=conversation, progress=update, **named)


def _show(call: Call, outcome: _Outcome, seconds: float, *, dry_run: bool, changes: bool) -> None:
    """Print the result; ``changes``: options were given that do not change known chunks."""
    for report in outcome.folders:
        show_folder(call, report)
    if dry_run:
        return
    known = len(outcome.chunk_ids) - outcome.chunks_created
    line = f"remembered {amount(outcome.chunks_created, 'chunk')}, {amount(outcome.total_tokens, 'token')}"
    if outcome.texts > 1:
        line += f", from {amount(outcome.texts, 'text')}"
    if known > 0:
        line += f"; {amount(known, 'chunk')} already known"
    print_text(f"{line}  ({seconds:.1f} s)")
    for chunk_id in outcome.chunk_ids[:_MAX_LISTED] if not outcome.folders else ():
        print_text(f"  {chunk_id}", "cyan")
    if len(outcome.chunk_ids) > _MAX_LISTED and not outcome.folders:
        print_text(f"  … and {len(outcome.chunk_ids) - _MAX_LISTED:,} more (--json names all)", "dim")
    if known > 0 and changes:
        print_text("known chunks were not changed; use rlm-mem chunk update ID", "yellow")
    if outcome.replaced:
        print_text(f"replaced {_ids(outcome.replaced)}")
    if outcome.proposed:
        print_text(f"to review (rlm-mem review show ID): {_ids(outcome.proposed)}")
    if outcome.quarantined:
        print_text(
            f"in quarantine, and hidden until rlm-mem chunk release ID: {_ids(outcome.quarantined)}", "yellow"
        )
    if outcome.secrets:
        found = rlm_mem.SecretsFound(outcome.secrets, outcome.hidden)
        print_text(found.told("--secrets {}"), "yellow")


def _ids(ids: Sequence[str]) -> str:
    more = f" … and {len(ids) - _MAX_LISTED:,} more (--json names all)" if len(ids) > _MAX_LISTED else ""
    return ", ".join(ids[:_MAX_LISTED]) + more


def _by_reason(problems: Sequence[ImportProblem]) -> list[str]:
    """Return one line for each reason, since a folder may contain many files that are not text."""
    reasons: dict[str, list[str]] = {}
    for one in problems:
        reasons.setdefault(one_line(one.reason), []).append(one.where)
    return [
        f"{names[0]}: {reason}" if len(names) == 1 else f"{len(names):,} files, such as {names[0]}: {reason}"
        for reason, names in reasons.items()
    ]


def show_folder(call: Call, report: FolderReport) -> None:
    """Print the result of a folder: the counts, and the first files of each kind."""
    print_text(f"would be done: {report}" if report.dry_run else str(report), "bold")
    rows: list[tuple[str, list[str], str]] = [
        ("added", report.added, "dim"),
        ("changed", report.changed, "dim"),
        ("renamed", [f"{old} -> {new}" for old, new in report.renamed], "dim"),
        ("restored", report.restored, "dim"),
        ("archived", report.archived, "dim"),
        ("notice", _by_reason(report.notices), "yellow"),
        ("refused", _by_reason(report.refused), "yellow"),
    ]
    for title, names, style in rows:
        for name in names[:10]:
            print_text(f"  {title}: {one_line(name, 160)}", style)
        if len(names) > 10:
            print_text(f"  {title}: {len(names) - 10:,} more (--json names all)", style)
    if report.change:
        print_text(f"  {call.undo_command(report.change)} undoes it", "dim", wrap=False)

"""`rlm-mem remember`: text, files, folders and stdin become chunks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import rlm_mem
from rlm_mem.cli import options, sources
from rlm_mem.cli.call import Call
from rlm_mem.cli.ids import full_ids
from rlm_mem.cli.terminal import amount, one_line, print_json, progress, screen, text
from rlm_mem.errors import InputError


def remember(
    call: Call,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT]", help="What to remember; - or nothing reads stdin.", show_default=False
        ),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", metavar="PATH", help="Remember this file; may be given again."),
    ] = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option("--folder", metavar="PATH", help="Remember the text files below this folder."),
    ] = None,
    pattern: Annotated[
        list[str] | None,
        typer.Option("--glob", metavar="PATTERN", help="With --folder: only such names, for example '*.md'."),
    ] = None,
    conversation: options.Conversation = None,
    tags: options.Tags = None,
    kind: options.Type = None,
    confidence: options.Confidence = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="When it was said or happened, where that is not now (ISO 8601)."
        ),
    ] = None,
    replaces: Annotated[
        list[str] | None,
        typer.Option("--replaces", metavar="ID", help="A chunk that this text replaces; may be given again."),
    ] = None,
    origin: options.CameAs = None,
    trust: options.Trusted = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="From this time on it is gone (ISO 8601)."),
    ] = None,
    ttl: Annotated[
        str | None,
        typer.Option(
            "--ttl", metavar="TIME", help="How long it is kept, such as 12h or 30d; then it is gone."
        ),
    ] = None,
    secrets: options.Secrets = None,
) -> None:
    """Remember a text: it is split into chunks, and linked with what is there."""
    given = {
        "tags": tags,
        "confidence": confidence,
        "chunk_type": kind,
        "occurred_at": at,
        "secrets": secrets,
        "origin": origin,
        "trust": trust,
        "expires": expires,
        "ttl": ttl,
    }
    named = {name: value for name, value in given.items() if value is not None}
    texts = _texts(words, file, folder)
    paths = [path for one in folder or () for path in sources.files_below(one, pattern or ())]
    if not texts and not paths and not folder:
        raise InputError(
            "there is nothing to remember", hint="Give a text, --file, --folder, or pipe something in."
        )
    for source in texts:
        if not source.text.strip():
            where = f"{source.path} is empty" if source.path is not None else "the text is empty"
            raise InputError(
                f"{where}: there is nothing to remember",
                hint="Give a text of at least one visible character.",
            )

    if replaces and (paths or len(texts) != 1):
        raise InputError("--replaces needs one text", hint="Give the text that replaces the chunk alone.")
    started = time.perf_counter()
    with call.open(create=True) as memory:
        if replaces:
            named["replaces"] = full_ids(memory, replaces)
        outcome = _Outcome()
        _from_texts(memory, texts, named, conversation, outcome, quiet=call.json)
        _from_folder(memory, paths, named, conversation, outcome, quiet=call.json)
    if call.json:
        print_json(outcome.as_dict())
    else:
        _show(outcome, time.perf_counter() - started)
    if outcome.failed:
        raise typer.Exit(1)


class _Outcome:
    """What became of the texts: chunk ids in order, tokens, and the files left out."""

    def __init__(self) -> None:
        self.chunk_ids: list[str] = []
        self.tokens = 0
        self.created = 0
        self.texts = 0
        self.skipped: list[sources.Skipped] = []
        self.failed: list[sources.Skipped] = []
        self.secrets: Counter[str] = Counter()
        self.hidden = False
        self.replaced: list[str] = []

    def add(self, result: rlm_mem.RememberResult) -> None:
        self.texts += 1
        self.chunk_ids += result.chunk_ids
        self.tokens += result.tokens
        self.created += result.created
        self.secrets.update(result.secrets.rules)
        self.replaced += result.replaced
        self.hidden = self.hidden or result.secrets.hidden  # one command has one action

    def as_dict(self) -> dict[str, Any]:
        return {
            "success": not self.failed,
            "chunk_ids": self.chunk_ids,
            "total_tokens": self.tokens,
            "chunks_created": self.created,
            "texts": self.texts,
            "replaced": self.replaced,
            "skipped": self.skipped,
            "failed": self.failed,
            "secrets": dict(self.secrets),
            "secrets_hidden": self.secrets.total() if self.hidden else 0,
        }


def _texts(
    words: list[str] | None, files: list[Path] | None, folders: list[Path] | None
) -> list[sources.InputText]:
    found = [sources.one_file(path) for path in files or ()]
    if words and words != ["-"]:
        found.append(sources.InputText(sources.typed(words)))
    elif words == ["-"] or not (files or folders):
        said = sources.piped()
        if said is not None and said.strip():
            found.append(sources.InputText(said))
    return found


def _from_texts(
    memory: rlm_mem.Memory,
    texts: list[sources.InputText],
    named: dict[str, Any],
    conversation: str | None,
    outcome: _Outcome,
    *,
    quiet: bool,
) -> None:
    for source in texts:
        with progress("remembering", quiet=quiet) as tell:
            outcome.add(_remember(memory, source, named, conversation, tell))


def _from_folder(
    memory: rlm_mem.Memory,
    paths: list[Path],
    named: dict[str, Any],
    conversation: str | None,
    outcome: _Outcome,
    *,
    quiet: bool,
) -> None:
    largest = memory.store.config.ingest.max_content_bytes
    with progress("remembering", unit="files", quiet=quiet) as tell:
        for done, path in enumerate(paths):
            tell(done, len(paths))
            source = sources.text_of(path, largest)
            if isinstance(source, sources.Skipped):
                outcome.skipped.append(source)
                continue
            try:
                outcome.add(_remember(memory, source, named, conversation, None))
            except InputError as error:  # one bad file must not stop a thousand good ones
                outcome.failed.append(sources.Skipped(path, str(error)))


def _remember(
    memory: rlm_mem.Memory,
    source: sources.InputText,
    named: dict[str, Any],
    conversation: str | None,
    tell: Callable[[int, int], None] | None,
) -> rlm_mem.RememberResult:
    """One text. The chunks of a file belong together: its path is their conversation unless one is named."""
    more = dict(named)
    if source.path is not None:
        more["source"] = "import"
        more["provenance"] = {"path": str(source.path)}
        conversation = conversation or f"file:{source.path}"
    return memory.remember(source.text, conversation_id=conversation, progress=tell, **more)


def _show(outcome: _Outcome, seconds: float) -> None:
    console = screen()
    known = len(outcome.chunk_ids) - outcome.created
    line = f"remembered {amount(outcome.created, 'chunk')}, {amount(outcome.tokens, 'token')}"
    if outcome.texts > 1:
        line += f", from {amount(outcome.texts, 'text')}"
    if known > 0:
        line += f"; {amount(known, 'chunk')} already known"
    console.print(text(f"{line}  ({seconds:.1f} s)"))
    for chunk_id in outcome.chunk_ids[:20]:
        console.print(text(f"  {chunk_id}", "cyan"))
    if len(outcome.chunk_ids) > 20:
        console.print(text(f"  … and {len(outcome.chunk_ids) - 20:,} more (--json names all)", "dim"))
    if outcome.replaced:
        console.print(text(f"replaced {', '.join(outcome.replaced)}"))
    if outcome.secrets:
        console.print(text(str(rlm_mem.SecretsFound(outcome.secrets, outcome.hidden)), "yellow"))
    for title, rows in (("skipped", outcome.skipped), ("failed", outcome.failed)):
        for row in rows[:10]:
            console.print(text(f"{title}: {row.path}: {one_line(row.reason)}", "yellow"))
        if len(rows) > 10:
            console.print(text(f"{title}: {len(rows) - 10:,} more (--json names all)", "yellow"))

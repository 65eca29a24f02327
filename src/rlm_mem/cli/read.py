"""Reading a memory: search, show, list, tags, conversations, links, history, stats."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import rlm_mem
from rlm_mem.chunk import ChunkLinks, from_epoch
from rlm_mem.chunk.types import Direction, out_of_date, strength_word
from rlm_mem.cli import options, periods
from rlm_mem.cli.call import BrainCall, Call, other_places
from rlm_mem.cli.ids import full_id, full_ids, no_chunk, short_ids
from rlm_mem.cli.options import FILTER, argument, flag, option
from rlm_mem.cli.terminal import (
    FOLDED,
    RIGHT,
    amount,
    day,
    moment,
    note,
    one_line,
    print_json,
    print_pairs,
    print_table,
    print_text,
    screen,
    text,
)
from rlm_mem.errors import InvalidQuery, NotFoundError, ServerAway
from rlm_mem.store.core.records import LinkedChunk

MAX_LINKS = 8  # maximum number of links shown below a chunk; rlm-mem link list shows all
MAX_PARTS = 8  # maximum number of parts of a score shown, strongest first; --json has all
_MAX_EXCERPT = 80  # characters of a linked chunk that a wide table shows


_CONTENT: tuple[str, dict[str, Any]] = ("content", {"overflow": "ellipsis", "ratio": 1})
_IDS: dict[str, Any] = {"style": "cyan", "overflow": "fold"}
"""Columns of a table: the content of chunks, and the options of that with their ids."""

_NARROW = 60
"""Width in columns below which a list takes several lines for each chunk."""


class FilterCall(Call, frozen=True):
    """Options of `search` and `list` that select chunks."""

    with_tags: Annotated[
        list[str] | None, option("--tag -t", "TAG", "With this tag; if repeated, with all of them.", FILTER)
    ] = None
    any_tags: Annotated[
        list[str] | None, option("--any-tag", "TAG", "With at least one of these tags.", FILTER)
    ] = None
    kind: Annotated[str | None, option("--type", "TYPE", "Of this type.", FILTER)] = None
    conversation: Annotated[
        str | None, option("--conversation -c", "ID", "In this conversation.", FILTER)
    ] = None
    since: periods.Since = None
    until: periods.Until = None
    origin: Annotated[
        str | None,
        option("--origin", "ORIGIN", "Of this origin: person, agent, tool, import or web.", FILTER),
    ] = None
    trust: Annotated[
        str | None,
        option("--trust", "LEVEL", "With at least this trust: untrusted, ordinary or trusted.", FILTER),
    ] = None
    as_of: periods.AsOf = None


def search(
    call: FilterCall,
    query: Annotated[list[str], argument("QUERY", "Words, names, dates, or a question.")],
    limit: Annotated[int, option("--limit -n", "N", "At most this many hits.", min=1, max=1000)] = 10,
    by: Annotated[
        Literal["chunk", "segment", "conversation"],
        option("--by", "UNIT", "chunk, segment (a turn or a sentence) or conversation."),
    ] = "chunk",
    explain: Annotated[bool, flag("--explain", "Show the parts of each score.")] = False,
    neighbours: Annotated[
        int, option("--neighbours", "N", "Show N turns or sentences on each side of a hit.", min=0, max=10)
    ] = 0,
    max_tokens: options.MaxTokens = None,
    speaker: Annotated[str | None, option("--speaker", "NAME", "Text by this person.", FILTER)] = None,
    superseded: Annotated[
        bool, flag("--superseded", "Rank superseded memories like others.", FILTER)
    ] = False,
) -> None:
    """Search memories by words, names and dates, best first, without a model."""
    given: dict[str, Any] = {
        "tags_all": call.with_tags,
        "tags_any": call.any_tags,
        "chunk_type": call.kind,
        "conversation_id": call.conversation,
        "start": call.since,
        "end": call.until,
        "speaker": speaker,
        "include_superseded": superseded or None,
        "origin": call.origin,
        "trust": call.trust,
    }
    named = {name: value for name, value in given.items() if value is not None}
    words = " ".join(query)
    if not words.strip() and not named:
        raise InvalidQuery("the query is empty", hint="give words to look for; rlm-mem list shows everything")
    with call.open() as memory:
        filters = rlm_mem.Filters(**named) if named else None
        hits = memory.search(
            words,
            limit=limit,
            filters=filters,
            by=by,
            explain=explain,
            neighbours=neighbours,
            max_tokens=max_tokens,
            as_of=call.as_of,
        )
        if call.printed_json(hits):
            return
        if not hits:
            _show_nothing(memory, words, call.as_of, filtered=filters is not None)
    for hit in hits:
        _show_hit(hit)


def _show_nothing(memory: rlm_mem.Memory, words: str, as_of: str | None, *, filtered: bool) -> None:
    """Say that nothing was found, and whether that is due to the filters, or to the namespace."""
    if filtered and (
        memory.search(words, limit=1, as_of=as_of)
        if words.strip()
        else memory.list_chunks(limit=1, as_of=as_of)
    ):
        print_text("nothing found with these filters", "dim")
        return
    print_text("nothing found", "dim")
    if places := other_places(memory):
        print_text(places, "dim", wrap=False)


def _show_hit(hit: rlm_mem.Hit) -> None:
    outside = f"{hit.trust} ({hit.origin})" if hit.trust == "untrusted" else None
    about = [hit.type, day(hit.at), outside, hit.author, hit.conversation_id]  # the last may be cut off
    head = text(f"{hit.score:z6.2f}  ", "dim") + text(hit.chunk_id, "cyan")
    head += text("  " + " · ".join(part for part in about if part), "dim")
    print_text(head, cut=True)
    if ended := out_of_date(hit.superseded_by, hit.ended_at):
        print_text(ended, "yellow", indent=8)
    if hit.replaces:
        print_text(f"replaces {', '.join(hit.replaces)}", "dim", indent=8)
    for one in hit.neighbours:
        if one.offset < 0:
            print_text(one_line(one.text, 2000), "dim", indent=10)
    print_text(one_line(hit.snippet, 2000), indent=8)
    for one in hit.neighbours:
        if one.offset > 0:
            print_text(one_line(one.text, 2000), "dim", indent=10)
    for mark in hit.marks():  # below the hit, since it quotes another memory
        print_text(mark, "yellow", indent=8)
    if hit.parts:
        strongest = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
        named_parts = "  ".join(
            f"{name}\u00a0{value:+.2f}" for name, value in strongest[:MAX_PARTS] if abs(value) >= 0.005
        )
        print_text(named_parts, "dim", indent=8)


def show(
    call: Call,
    chunk_ids: options.ChunkIds,
    raw: Annotated[bool, flag("--raw", "Print the content alone.")] = False,
    as_of: periods.AsOf = None,
) -> None:
    """Show chunks in full: content, metadata and links."""
    with call.open() as memory:
        chunks = []
        for chunk_id in full_ids(memory, chunk_ids):
            chunk = memory.get(chunk_id, as_of=as_of)
            if chunk is None and as_of and memory.get(chunk_id):
                raise NotFoundError(f"{chunk_id} was not valid on {as_of}", hint="rlm-mem list shows the ids")
            if chunk is None:
                raise no_chunk(memory, chunk_id)
            chunks.append(chunk)
        targets = [link.target_id for chunk in chunks for link in chunk.links[:MAX_LINKS]]
        texts = {} if call.json or raw else _first_words(memory, targets)
    if call.json:
        shapes = [chunk.to_dict() for chunk in chunks]
        print_json(shapes if len(shapes) > 1 else shapes[0])
        return
    for number, chunk in enumerate(chunks):
        if raw:
            print_text(chunk.content, wrap=False)
            continue
        if number:
            print_text("")
        print_text(chunk.id, "bold cyan")
        print_pairs(_about(chunk))
        print_text("")
        print_text(chunk.content)
        if chunk.links:
            print_text("")
            _print_links((("→", link.target_id, link) for link in chunk.links[:MAX_LINKS]), texts)
            if len(chunk.links) > MAX_LINKS:
                more = amount(len(chunk.links) - MAX_LINKS, "link")
                print_text(f"and {more} more: rlm-mem link list {chunk.id}", "dim")


def _about(chunk: rlm_mem.Chunk) -> list[tuple[str, object]]:
    meta = chunk.metadata
    rows: list[tuple[str, object | None]] = [
        ("type", chunk.type),
        ("tags", ", ".join(chunk.tags)),
        ("conversation", meta.conversation_id),
        ("occurred", moment(meta.occurred_at) if meta.occurred_at else None),
        ("created", moment(meta.created_at)),
        ("modified", moment(meta.modified_at) if chunk.revision > 1 else None),
        ("confidence", f"{meta.confidence:.2f}"),
        ("tokens", f"{chunk.tokens:,}"),
        ("revision", chunk.revision),
        ("read", amount(meta.access_count, "time")),
        ("source", " ".join([meta.source, *(f"{key}={value}" for key, value in meta.provenance.items())])),
        ("origin", f"{meta.origin}, {meta.trust}"),
        ("expires", moment(meta.expires_at) if meta.expires_at else None),
        ("valid until", moment(meta.valid_to) if meta.valid_to else None),
        ("superseded by", meta.superseded_by),
        ("replaces", ", ".join(chunk.replaces)),
    ]
    return [(name, value) for name, value in rows if value not in (None, "")]


def list_(
    call: FilterCall,
    archived: Annotated[bool, flag("--archived", "Deleted chunks, which can be restored.", FILTER)] = False,
    limit: options.Limit = 50,
    offset: Annotated[int, option("--offset", "N", "Skip the first N.", min=0)] = 0,
    oldest: Annotated[bool, flag("--oldest", "List the oldest first.")] = False,
) -> None:
    """List chunks, newest first; rlm-mem tier list lists tiered memories, the most reliable first."""
    with call.open() as memory:
        view = memory.store if call.as_of is None else memory.store.held_at(call.as_of)
        chunks = list(
            view.iter_chunks(
                conversation_id=call.conversation,
                start_date=call.since,
                end_date=call.until,
                tags=call.with_tags,
                any_tags=call.any_tags,
                chunk_type=call.kind,
                archived=archived,
                origin=call.origin,
                trust=call.trust,
                limit=limit,
                offset=offset,
                newest_first=not oldest,
            )
        )
        ended = {chunk.id for chunk in chunks if view.out_of_date(chunk.metadata)}
        total = memory.stats().chunk_count if not (chunks or archived or call.json) else 0
        elsewhere = "" if chunks or call.json else other_places(memory)
    if call.printed_json([chunk.to_dict() for chunk in chunks]):
        return
    console = screen()
    if not chunks:
        print_text(f"none of {amount(total, 'chunk')} match" if total else "no chunks", "dim")
        if elsewhere:
            print_text(elsewhere, "dim", wrap=False)
        return
    if console.width < _NARROW:
        for chunk in chunks:
            print_text(chunk.id, "cyan")
            print_text(f"  {day(chunk.metadata.at)} · {chunk.type}", "dim")
            print_text(_content_line(chunk, ended), indent=4)
    else:
        _print_chunks(chunks, ended, wide=console.width >= 100)
    if len(chunks) == limit:
        print_text(f"the first {limit}; --limit and --offset show more", "dim")


def _print_chunks(chunks: Sequence[rlm_mem.Chunk], ended: Collection[str], *, wide: bool) -> None:
    columns: list[str | tuple[str, dict[str, Any]]] = [("id", _IDS), "date", "type"]
    if wide:
        columns += [("tokens", RIGHT), ("tags", {"max_width": 24, "overflow": "ellipsis"})]
    ids = short_ids([chunk.id for chunk in chunks])
    rows = []
    for chunk in chunks:
        more = (chunk.tokens, ", ".join(chunk.tags)) if wide else ()
        content = text(_content_line(chunk, ended), "dim" if chunk.id in ended else "")
        rows.append((ids[chunk.id], day(chunk.metadata.at), chunk.type, *more, content))
    print_table((*columns, _CONTENT), rows)


def _content_line(chunk: rlm_mem.Chunk, ended: Collection[str]) -> str:
    """Return the content on one line, marked if it is out of date."""
    return one_line(f"{'out of date: ' if chunk.id in ended else ''}{chunk.content}")


def tags(
    call: Call,
    limit: Annotated[int | None, option("--limit -n", "N", "Only the N most common.", min=1)] = None,
) -> None:
    """List the tags, most common first."""
    with call.open() as memory:
        counts = memory.store.tag_counts(limit)
    rows = ((tag, f"{count:,}") for tag, count in counts)
    data = [{"tag": tag, "chunks": count} for tag, count in counts]
    call.report_table(data, (("tag", FOLDED), ("chunks", RIGHT)), rows, none="no tags")


def conversations(
    call: Call, limit: Annotated[int | None, option("--limit -n", "N", "Only the N latest.", min=1)] = None
) -> None:
    """List the conversations."""
    with call.open() as memory:
        found = memory.store.conversations(limit)
    known = [(one.id, one.count, _iso_time(one.first_at), _iso_time(one.last_at)) for one in found]
    data = [dict(zip(("id", "chunks", "first_at", "last_at"), one, strict=True)) for one in known]
    rows = ((name, f"{count:,}", day(first), day(last)) for name, count, first, last in known)
    columns = (("conversation", FOLDED), ("chunks", RIGHT), "first", "last")
    call.report_table(data, columns, rows, none="no conversations")


def namespaces(call: BrainCall) -> None:
    """List the namespaces of this brain."""
    with call.open() as memory:
        missing: ServerAway | None = None
        try:
            found = memory.store.namespaces()
        except ServerAway as error:  # list the namespaces of the other servers, then report the missing one
            found, missing = error.namespaces, error
    rows = ((name, f"{count:,}") for name, count in found)
    data = [{"namespace": name, "chunks": count} for name, count in found]
    call.report_table(data, (("namespace", FOLDED), ("chunks", RIGHT)), rows, none="no namespaces")
    if missing is not None:
        raise missing


def links(
    call: Call,
    chunk_id: options.ChunkId,
    kind: Annotated[str | None, option("--type", "TYPE", "Only links of this type.")] = None,
    direction: Annotated[Direction, option("--direction", "WAY", "out, in or both.")] = "both",
    limit: options.Limit = 50,
) -> None:
    """Show the links from and to a chunk."""
    with call.open() as memory:
        chunk_id = full_id(memory, chunk_id)
        if not memory.store.exists(chunk_id):
            raise no_chunk(memory, chunk_id)
        found = memory.store.linked(chunk_id, kind, direction=direction, limit=limit)
        texts = {} if call.json else _first_words(memory, [link.chunk_id for link in found])
    shown = (("←" if one.direction == "in" else "→", one.chunk_id, one) for one in found)
    call.report(found, lambda: _print_links(shown, texts))


def _first_words(memory: rlm_mem.Memory, chunk_ids: Sequence[str]) -> dict[str, str]:
    """The beginning of these chunks on one line, by id."""
    found = memory.store.get_many(list(dict.fromkeys(chunk_ids)))
    return {one: one_line(chunk.content)[:_MAX_EXCERPT] for one, chunk in found.items()}


def _print_links(
    links: Iterable[tuple[str, str, ChunkLinks | LinkedChunk]], texts: Mapping[str, str]
) -> None:
    """Print links, each given with its arrow and the other chunk; ``texts`` has the beginnings of chunks."""
    rows = (
        (arrow, link.type, other, strength_word(link.strength), link.reasoning or "", texts.get(other, ""))
        for arrow, other, link in links
    )
    columns = ("", "link", ("chunk", _IDS), "strength", ("why", FOLDED), _CONTENT)
    print_table(columns, rows, none="no links")


_MAX_SUCCESSION = 100
"""Most chunks of a succession that `history` shows."""


def history(call: Call, chunk_id: options.ChunkId) -> None:
    """Show the versions of a chunk, and the chunks that it replaced and that replaced it."""
    with call.open() as memory:
        chunk_id = full_id(memory, chunk_id)
        versions = memory.history(chunk_id)
        succession = [] if call.json or not versions else _succession(memory, versions[-1].chunk)
        missing = no_chunk(memory, chunk_id) if not versions or not versions[-1].current else None
    if not versions and missing is not None:
        raise missing
    if call.printed_json(versions):
        return
    rows = []
    before: rlm_mem.Chunk | None = None
    for version in versions:
        number = f"{'* ' if version.current else ''}{version.revision}"
        changed = _changed_fields(before, version.chunk)
        rows.append((number, moment(version.modified_at), changed, one_line(version.chunk.content)))
        before = version.chunk
    print_table((("revision", RIGHT), "time", "changed", _CONTENT), rows)
    if len(succession) > 1:
        print_table(
            (("chunk", _IDS), "since", "until", _CONTENT),
            (_succession_row(one, shown=one.id == chunk_id) for one in succession),
        )
    if missing is not None:
        note(f"{missing.message}; {missing.hint}. These are its former versions.")


def _succession(memory: rlm_mem.Memory, chunk: rlm_mem.Chunk) -> list[rlm_mem.Chunk]:
    """Return a chunk with all that it replaced and that replaced it, directly or not; in order of time."""
    found = {chunk.id: chunk}
    waiting = [chunk]
    while waiting and len(found) < _MAX_SUCCESSION:
        about = [(one.replaces, one.metadata.superseded_by) for one in waiting]
        ids = [other for replaced, by in about for other in (*replaced, by) if other and other not in found]
        waiting = list(memory.store.get_many(list(dict.fromkeys(ids)), track=False).values())
        found |= {one.id: one for one in waiting}
    return sorted(found.values(), key=lambda one: one.metadata.at)


def _succession_row(chunk: rlm_mem.Chunk, *, shown: bool) -> tuple[str, str, str, str]:
    until = chunk.metadata.valid_to
    return (
        f"{'* ' if shown else ''}{chunk.id}",
        day(chunk.metadata.at),
        "–" if until is None else day(until),
        one_line(chunk.content),
    )


def _changed_fields(before: rlm_mem.Chunk | None, after: rlm_mem.Chunk) -> str:
    """Return the names of the fields that differ between two versions."""
    if before is None:
        return "–"
    differs = {
        "content": before.content != after.content,
        "type": before.type != after.type,
        "tags": before.tags != after.tags,
        "links": before.links != after.links,
        "confidence": before.metadata.confidence != after.metadata.confidence,
        "validity": (before.metadata.superseded_by, before.metadata.valid_to)
        != (after.metadata.superseded_by, after.metadata.valid_to),
    }
    return ", ".join(name for name, changed in differs.items() if changed) or "metadata"


def stats(call: Call) -> None:
    """Show how much is remembered."""
    with call.open() as memory:
        figures = memory.store.get_stats()
    rows = (
        (_label(name), moment(value) if name.endswith("_at") else _figure(value))
        for name, value in figures.items()
        if value is not None
    )
    call.report(figures, lambda: print_pairs(rows))


def _label(name: str) -> str:
    return name.removesuffix("_mb").replace("_", " ") + (" (MB)" if name.endswith("_mb") else "")


def _figure(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_figure(count)}" for key, count in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _iso_time(seconds: float) -> str:
    return from_epoch(seconds).isoformat(timespec="seconds").replace("+00:00", "Z")

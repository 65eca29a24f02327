"""What can be erased by a name, what bears that name, and whether anything of it remains after an erasure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from rlm_mem.arguments import check_kind
from rlm_mem.chunk import Chunk, check_namespace, encode_chunk
from rlm_mem.errors import InputError
from rlm_mem.store.core.bulk import is_from
from rlm_mem.store.core.contents import NamespaceReader, owners
from rlm_mem.store.core.erasure_report import ErasureReport, Matcher

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

_MAX_NAME = 200


def checked_name(
    person: str | None, source: str | None, namespace: str | None, chunk_ids: Sequence[str] | None = None
) -> str:
    """Return the name of what is to be erased, empty for chunks; raises InputError."""
    if sum(one is not None for one in (person, source, namespace, chunk_ids)) != 1:
        raise InputError("nothing to erase was named", hint="name a person, a source or a namespace")
    if chunk_ids is not None:
        return ""
    if namespace is not None:
        return check_namespace(namespace)
    given = check_kind(source if person is None else person, str, "source" if person is None else "person")
    named = given if person is None else " ".join(one for one in given.split(" ") if one)
    if not 2 <= len(named) <= _MAX_NAME or not named.isprintable() or not re.search(r"\w", named):
        raise InputError(
            f"{named!r:.60} cannot be erased: give 2 to {_MAX_NAME} characters of one line with a letter or digit"
        )
    return named


def bears_name(chunk: Chunk, needles: Matcher) -> bool:
    """Return whether a chunk is to be erased with a person or a source."""
    if needles.report.person is not None:
        return needles.names(encode_chunk(chunk))
    return is_from(chunk, str(needles.report.source))


def written_since(store: ChunkStore, report: ErasureReport, spaces: Iterable[str]) -> int:
    """Return the number of chunks with the name that others wrote while a person or source was erased."""
    needles, count = Matcher(report), 0
    for namespace in spaces if report.namespace is None else ():
        reader = NamespaceReader(store, namespace)
        events = store.backend.read_events(namespace=namespace, since=report.at, op=None, chunk_id=None)
        ids = {str(one["chunk_id"]) for one in events if one.get("chunk_id") and one.get("op") != "erase"}
        count += sum(bears_name(chunk, needles) for chunk in reader.chunks(sorted(ids)).values())
    return count


def read_report(data: bytes) -> ErasureReport:
    """Decode the report in a file; raises InputError."""
    try:
        return msgspec.json.decode(data, type=ErasureReport)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"this is not the report of an erasure: {error}", hint="give the file that erase wrote"
        ) from None


def verify_erasure(store: ChunkStore, report: ErasureReport) -> list[str]:
    """Return the files or rows of the store whose bytes still contain the name or erased content; empty: none.

    Raises:
        InputError: the report does not name what was erased.
    """
    report = check_kind(report, ErasureReport, "report")
    ids = report.chunk_ids if report.is_by_id and report.chunk_ids else None
    checked_name(report.person, report.source, report.namespace, ids)
    needles = Matcher(report)
    spaces = list(dict.fromkeys([*owners(store), store.namespace]))
    found: dict[str, None] = {}
    for where, data in store.backend.stored_bytes(spaces):
        if needles.found(data) or needles.names(where.encode("utf-8", "replace")):
            found[where] = None
    return list(found)

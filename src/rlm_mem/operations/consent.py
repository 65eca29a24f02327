"""What agents and clients ask a person for, instead of doing it: forgetting and replacing what that person wrote.

The setting ``trust.by_agents`` makes them ask; by default they do it, and a person can undo it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from rlm_mem.chunk import Chunk, check_chunk_ids
from rlm_mem.continuum.cases import Case
from rlm_mem.continuum.requests import forget_case, persons_mark, replace_case
from rlm_mem.operations.operation import Context
from rlm_mem.operations.problems import Refused, refused
from rlm_mem.store.core.records import ACTIVE

WHERE = "rlm-mem review, or the page Review of the dashboard"
_NAMED = 3
"""Most memories that a sentence names."""


class AskedPerson(Struct):
    """Ids of the cases of the review queue that ask a person, and a sentence that says what they wait for."""

    proposed: list[str]
    note: str


def persons(context: Context, chunk_ids: Iterable[str], *, archived: bool = False) -> dict[str, Chunk]:
    """Return those of these chunks that the caller may forget or replace only if a person agrees, by id.

    It is empty for persons, and unless the setting ``trust.by_agents`` is ``ask``. What is in quarantine or has expired
    is among them, too: an agent that hid a memory must not be able to archive it then.

    Args:
        archived: also those in the archive.
    """
    if not context.agent or context.memory.config.trust.by_agents == "apply":
        return {}
    store = context.memory.store
    found = store.backend.chunks(
        store.namespace, check_chunk_ids(list(chunk_ids)), status=None if archived else ACTIVE
    )
    return {one: chunk for one, chunk in found.items() if persons_mark(store, chunk)}


def ask_to_forget(context: Context, chunks: Sequence[Chunk]) -> AskedPerson:
    """Ask a person to forget chunks of theirs; the chunks stay until then."""
    store = context.memory.store
    if chunks and context.in_batch:  # a batch is done as a whole or not at all
        mark = persons_mark(store, chunks[0])
        raise _refusal(chunks[0], mark, "a batch", "forget", "ask for it in a request of its own")
    _refuse_hidden(chunks, "forget")
    at = _conditions(context)
    cases = context.memory.continuum.review.ask(
        [forget_case(store, one, _caller(context), at) for one in chunks]
    )
    return _asked(context, chunks, cases, "forget")


def ask_to_replace(
    context: Context, newer_id: str, chunks: Sequence[Chunk], why: str | None = None
) -> AskedPerson:
    """Ask a person whether a chunk replaces chunks of theirs; all of them are valid until then."""
    store = context.memory.store
    _refuse_hidden(chunks, "replace")
    newer = store.get_chunk(newer_id, track=False)
    if newer is None:
        return AskedPerson([], f"{newer_id} is hidden, so it replaces nothing")
    at = _conditions(context)
    wanted = [replace_case(store, newer, one, _caller(context), why, at) for one in chunks]
    return _asked(context, chunks, context.memory.continuum.review.ask(wanted), "replace")


def refuse_persons(
    context: Context, chunk_ids: Iterable[str], what: str, hint: str, *, archived: bool = False
) -> None:
    """Refuse to do something with a chunk that is a person's, which cannot be asked for."""
    for chunk in persons(context, chunk_ids, archived=archived).values():
        raise _refusal(chunk, persons_mark(context.memory.store, chunk), "a client", what, hint)


def _conditions(context: Context) -> dict[str, int]:
    """Return the revision of the chunk in the path if the request is conditional on it (``traits.matched``)."""
    if context.if_match is None or context.if_match.strip() == "*":
        return {}
    chunk = context.memory.store.get_chunk(context.path["chunk_id"], track=False)
    return {} if chunk is None else {chunk.id: chunk.revision}


def _caller(context: Context) -> str:
    return context.memory.store.actor or "an agent"


def _refusal(chunk: Chunk, why: str, who: str, what: str, hint: str) -> Refused:
    return refused(409, f"{chunk.id} {why}, so {who} cannot {what} it", hint=hint)


def _refuse_hidden(chunks: Sequence[Chunk], what: str) -> None:
    """Refuse to ask about chunks in quarantine, about which a person is asked already."""
    for one in chunks:
        if one.metadata.trust == "quarantined":
            raise _refusal(one, "is in quarantine", "a client", what, f"a person decides: {WHERE}")


def _asked(context: Context, chunks: Sequence[Chunk], cases: Sequence[Case], what: str) -> AskedPerson:
    """Return the cases that wait, with the sentence for the caller."""
    waiting = [case.id for case in cases if case.status != "rejected"]
    named = ", ".join(one.id for one in chunks[:_NAMED]) + (", …" if len(chunks) > _NAMED else "")
    mark = persons_mark(context.memory.store, chunks[0])
    if not waiting:
        return AskedPerson([], f"{named} {mark}, and a person declined to {what} it: it stays valid")
    note = f"{named} {mark}: it stays until a person approves your request to {what} it ({WHERE})"
    return AskedPerson(waiting, note)

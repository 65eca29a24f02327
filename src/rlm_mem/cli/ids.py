"""Resolves typed ids: full ids, or an unambiguous beginning of an id or of its last part."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import rlm_mem
from rlm_mem import capture
from rlm_mem.chunk import is_chunk_id
from rlm_mem.cli.namespaces import PROJECT
from rlm_mem.errors import InputError, NotFoundError, ServerAway

_MAX_LISTED = 8
_SHORT_ID_CHARS = 8
"""Characters of the last part of a generated id."""
_TYPED = re.compile(r"[A-Za-z0-9_-]{1,200}")


def full_id(memory: rlm_mem.Memory, given: str) -> str:
    """Return the full id of a chunk, which may be deleted.

    Args:
        given: an id, its beginning with or without ``chunk-``, or the beginning of its last part: ``chunk-2026-03``,
            ``2026-03-02-a1``, ``a1b2``.

    Raises:
        NotFoundError: no chunk has such an id, and it is not a valid chunk id; or it is in quarantine.
        InputError: several ids match (the message names them), or the text cannot be part of an id.
    """
    return full_ids(memory, [given])[0]


def full_ids(memory: rlm_mem.Memory, given: Sequence[str]) -> list[str]:
    """Return the full ids of several chunks; see `full_id`."""
    known: list[str] = []
    found = []
    for one in given:
        if is_chunk_id(one) and (memory.store.exists(one) or memory.store.get_archived(one) is not None):
            found.append(one)
            continue
        if not known:
            known = [*memory.list_chunks(), *memory.list_chunks(archived=True)]
        try:
            found.append(known_id(one, known, "chunk", ids_shown(memory)))
        except NotFoundError:
            hidden = _matches(one, [chunk.id for chunk in memory.store.quarantined()])
            if hidden:
                raise NotFoundError(
                    f"{hidden[0]} is in quarantine",
                    hint=f"rlm-mem review list shows it, rlm-mem chunk release {hidden[0]} releases it",
                ) from None
            if not is_chunk_id(one):
                damaged = _matches(one, memory.store.backend.damaged_ids())
                if damaged:
                    raise no_chunk(memory, damaged[0]) from None
                raise
            found.append(one)  # a full id: the command reports that it does not exist
    return found


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Map each id to the beginning of its last part, which every command accepts, if unique, else to itself."""
    short = {one: one.rpartition("-")[2][:_SHORT_ID_CHARS] for one in ids}
    times = Counter(short.values())
    return {
        one: end if len(end) == _SHORT_ID_CHARS and times[end] == 1 else one for one, end in short.items()
    }


def quarantined_id(memory: rlm_mem.Memory, given: str) -> str:
    """Return the full id of a chunk in quarantine; other full ids are unchanged, for the command to refuse."""
    if is_chunk_id(given):
        return given
    hidden = [chunk.id for chunk in memory.store.quarantined()]
    return known_id(given, hidden, "chunk in quarantine", "rlm-mem review list shows quarantined chunks")


def no_chunk(memory: rlm_mem.Memory, chunk_id: str) -> NotFoundError:
    """Return the error for a full id without an active, readable chunk."""
    damage = memory.store.damage(chunk_id)
    if damage is not None:
        return NotFoundError(
            f"{chunk_id} cannot be read: {damage}", hint="rlm-mem store repair shows what can be repaired"
        )
    if memory.store.get_archived(chunk_id) is not None:
        return NotFoundError(f"{chunk_id} is deleted", hint=f"rlm-mem chunk restore {chunk_id} restores it")
    return NotFoundError(f"there is no chunk {chunk_id}", hint=ids_shown(memory))


def ids_shown(memory: rlm_mem.Memory) -> str:
    """Return the hint that names the commands that list ids, also those of the project of the working folder."""
    hint = "rlm-mem list, or rlm-mem list --archived, shows the ids"
    project = capture.project_of()
    if project is None or project.namespace == memory.store.namespace:
        return hint
    try:
        others = memory.store.namespaces()
    except ServerAway as error:
        others = error.namespaces
    if all(name != project.namespace for name, _ in others):
        return hint
    return f"{hint}; those of this project are in another namespace: add --namespace {PROJECT}"


def known_id(given: str, known: Iterable[str], noun: str, hint: str) -> str:
    """Return the one known id that matches; see `full_id`.

    Args:
        noun: the kind of object.
        hint: the command that lists the ids.
    """
    if not _TYPED.fullmatch(given):
        raise InputError(f"{given!r:.60} is neither an id nor a part of one", hint=hint)
    ids = list(dict.fromkeys(known))
    if given in ids:
        return given
    matches = _matches(given, ids)
    if not matches:
        raise NotFoundError(f"there is no {noun} {given}", hint=hint)
    if len(matches) > 1:
        shown = ", ".join(matches[:_MAX_LISTED])
        more = f" and {len(matches) - _MAX_LISTED:,} more" if len(matches) > _MAX_LISTED else ""
        raise InputError(f"{given} matches {len(matches):,} ids: {shown}{more}", hint="give more characters")
    return matches[0]


def _matches(given: str, ids: Sequence[str]) -> list[str]:
    """Return the ids that begin with a text, with or without ``chunk-``, or else those whose last part does."""
    begun = [one for one in ids if one.startswith(given) or one.partition("-")[2].startswith(given)]
    return begun or [one for one in ids if one.rpartition("-")[2].startswith(given)]

"""Host functions about a person: standing instructions, and these with likes, dislikes and habits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from rlm_mem.chunk import name_key
from rlm_mem.chunk.types import is_untrusted
from rlm_mem.ingest.chunking import leaning, mentions_speaker
from rlm_mem.sandbox.arguments import count, optional_text
from rlm_mem.sandbox.line_functions import HostFunctions, Line, is_assistant, is_speaker, users_of
from rlm_mem.text.analysis import Analyser, get_analyser
from rlm_mem.text.blocks import CODE, blocks
from rlm_mem.text.instructions import standing_instructions
from rlm_mem.text.sentences import sentences

_MIN_TERMS = 2
"""Minimum terms of a preference or habit; "I love it" tells nothing alone."""
_Found = Iterable[tuple[str, dict[str, str]]]
"""Sentences, each with further fields of its row."""


class PersonFunctions(HostFunctions):
    """The functions about a person; :mod:`rlm_mem.sandbox.reference` documents each."""

    def instructions(self, limit: Any = 50) -> list[dict[str, Any]]:
        """Return standing wishes of the user, newest first."""
        return self._stated(count("limit", limit, 1, 200), None, _wishes)

    def preferences(self, author: Any = None, limit: Any = 50) -> list[dict[str, Any]]:
        """Return standing wishes, likes, dislikes and habits of a person, newest first."""
        who = optional_text("author", author)
        analyser = get_analyser(self._store.config.search.language)
        rows = self._stated(
            count("limit", limit, 1, 200), who, partial(_leanings, analyser, self._lines.in_chat)
        )
        if not rows and who is not None:
            self._remark_unknown("preferences", who)
        return rows

    # Parts.

    def _stated(self, maximum: int, who: str | None, find: Callable[[Line], _Found]) -> list[dict[str, Any]]:
        """Return the sentences of a person that are found in the lines, newest first; a repeated one once.

        Args:
            who: a speaker; None: the users of an assistant or, without one, everybody.
        """
        found: dict[str, dict[str, Any]] = {}
        claims: dict[str, dict[str, Any]] = {}
        users = users_of(self._store)
        for chunk in self._lines.chunks(newest_first=True):
            about = chunk.metadata
            # Lines of the user in an imported chat are included, marked as untrusted; text of pages and tools is not.
            claimed = bool(users) and about.origin == "import"
            if self._store.out_of_date(about) or (is_untrusted(about.trust) and not claimed):
                continue
            for line in reversed(list(self._lines.lines(chunk, look_back=False))):
                if not _is_of(line, who, users):
                    continue
                kept = claims if is_untrusted(about.trust) else found
                for sentence, fields in find(line):
                    key = sentence.casefold()
                    if key not in found and key not in kept and len(kept) < maximum:
                        kept[key] = self._lines.shown(line, sentence) | fields
            if len(found) >= maximum:
                break
        # An untrusted wish never replaces a trusted one.
        return [*found.values(), *(one for key, one in claims.items() if key not in found)][:maximum]


def _is_of(line: Line, who: str | None, users: frozenset[str]) -> bool:
    """Return whether a line is of a speaker or, without a speaker, names this person."""
    if who is None:
        # Only the first part of an assistant's long answer names its speaker.
        return line.speaker in users if users else not is_assistant(line.speaker)
    if line.speaker is None and not users:
        return name_key(who) in name_key(line.text)
    return is_speaker(line.speaker, who)


def _wishes(line: Line) -> _Found:
    """Return the standing instructions in a line, each with the words that mark it."""
    found = standing_instructions(line.chunk.content, line.turn.body, line.turn.end)
    return [(sentence, {"rule": rule}) for sentence, rule in found]


def _leanings(analyser: Analyser, assisted: bool, line: Line) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the sentences in a line with a standing instruction, a preference or a habit, newest first.

    Args:
        assisted: instructions are for an assistant; advice to another person ("Make sure to rest") is left out.
    """
    text = line.text
    spans = [
        span
        for block in blocks(text)
        if block.kind != CODE
        for span in sentences(text, block.start, block.end)
    ]
    noted = line.speaker is None
    for start, end in reversed(spans):
        wish = next(iter(standing_instructions(text, start, end)), None)
        told = None if wish else leaning(text[start:end], own=not noted)
        if wish and (assisted or noted or mentions_speaker(wish[0])):
            yield wish[0], {"kind": "instruction", "rule": wish[1]}
        elif told and len(analyser.terms(told[1])) >= _MIN_TERMS:
            kind, clause = told
            yield " ".join(text[start:end].split()), {"kind": kind, "match": " ".join(clause.split())}

"""Lists in an opening: hits by day, code and echoes last, wishes, words that no hit contains, different statements."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk.types import untrusted_mark
from rlm_mem.sandbox.functions import StoreFunctions
from rlm_mem.sandbox.line_functions import MAX_LINE_CHARS, is_assistant
from rlm_mem.search.query import phrasing_terms
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import CODE, blocks, one_line
from rlm_mem.text.dates import find_dates
from rlm_mem.text.patterns import late

if TYPE_CHECKING:
    from rlm_mem.search import Hit
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.records import Summary

_ECHO_SHARE = 0.4
"""An assistant's line is an echo if the user's lines in the chunk contain at least this share of its terms."""
_ECHO_TERMS = 8
"""Fewest terms of an echo; a shorter line is an answer that shares words, such as "Take the blue one."."""

WORD = re.compile(r"\d[\d.,:]{0,20}\d|[^\W_][\w'’-]{2,40}|\b[A-Z]{2}\b")
_FEW_CHUNKS, _MAX_LACKING = 2, 6
"""Most chunks with a rare name of the question, and most words listed because no hit contains them."""
_ADVISING = 4
"""Most replies that are shown by their headings."""
_ADVISED_CHARS = 1_600
"""Most characters of the headings of all replies, of which each has its share."""
_COMPARED = 40
"""Characters of a line by which its turn is recognised."""
_ASKING = "ask asked many few list besides regarding please"
"""Further words of phrasing."""
_MANY_CHUNKS = 100
"""Fewest chunks of a store for which a missing word is informative; a small memory lacks most words."""

_COUNTED = re.compile(r"\bhow many((?: [\w'’-]{1,30}){1,4})", re.IGNORECASE)
"""Matches a question for a number; the group is what is counted."""
_RARE_SHARE = 1 / 3
"""Largest share of the chunks that contain a distinctive word of a question."""
_PAIRS_READ, _MAX_COUNTS = 10, 2
_BEFORE_MATCH, _DIFFERING_CHARS = 60, 160
"""Most characters of a statement before what differs, and in total."""
_HAVE_I = late(r"\s*(?:have|had|did|do|am|are|was|were) (?:I|we)\b", re.IGNORECASE)
"""Matches a question whether the user has done something."""
_DENIED_SHARE = 0.5
"""Fewest of the terms of such a question that a denial of it has."""


def lacking_words(store: ChunkStore, question: str, hits: Iterable[Mapping[str, Any]], chunks: int) -> str:
    """List names and numbers of the question that few chunks have and no hit, and its words that no chunk has.

    Dates are left out: a memory from August need not name the month. Other words are listed only if the store has many
    chunks, and not if they usually belong to the phrasing of a question ("mentioned").

    Args:
        chunks: number of chunks in the store.
    """
    question = question[:1_000]
    analyser = get_analyser(store.config.search.language)
    hit_terms = set(analyser.terms("\n".join(chain.from_iterable(map(itemgetter("lines"), hits)))))
    counts = store.candidate_source().term_counts(analyser.terms(question))
    dates = find_dates(question)
    other_limit = 0 if chunks >= _MANY_CHUNKS else -1
    phrasing = phrasing_terms(analyser).union(analyser.terms(_ASKING))
    rare: dict[str, str] = {}
    for match in WORD.finditer(question):
        terms = set(analyser.terms(match[0]))
        if terms <= phrasing and not _is_name(match):
            continue
        max_chunks = max(map(counts.get, terms, repeat(0)), default=_FEW_CHUNKS + 1)
        if max_chunks > (_FEW_CHUNKS if _is_name(match) else other_limit) or hit_terms & terms:
            continue
        if not any(one.start <= match.start() < one.end for one in dates):
            rare[match[0]] = f"“{match[0]}”{'' if max_chunks else ' (nor any chunk)'}"
    return ", ".join(list(rare.values())[:_MAX_LACKING])


def _is_name(word: re.Match[str]) -> bool:
    """Whether a word has a capital that does not begin a sentence, or begins with a digit."""
    before = word.string[: word.start()].rstrip()
    within = before[-1:] not in ("", *".?!:")
    return word[0][0].isdigit() or any(map(str.isupper, word[0] if within else word[0][1:]))


def wishes_listed(wishes: Iterable[Mapping[str, Any]], *, mark: bool) -> Iterator[str]:
    """Yield standing wishes, one per line, without ids, since no answer cites them."""
    for wish in wishes:
        untrusted = untrusted_mark(wish) if mark else ""
        yield from (f"- {line}{untrusted}" for line in wish.get("lines", ()))


def common_prefix(ids: Iterable[str]) -> str:
    """The part before the last hyphen that all ids share; empty for a single id, or if they differ."""
    first, *others = ids
    head = first[: first.rfind("-") + 1]
    return head if others and all(one.startswith(head) for one in others) else ""


def by_day(hits: Iterable[Mapping[str, Any]], prefix: str, *, mark: bool) -> Iterator[str]:
    """Yield the lines of hits in order of time, each with the id of its chunk; a new day precedes its lines.

    Args:
        prefix: the common beginning of all ids, which is left out.
    """
    day = ""
    for hit in hits:
        at = str(hit.get("at", ""))[:10]
        if at != day:
            yield at
            day = at
        untrusted = untrusted_mark(hit) if mark else ""
        for line in hit.get("lines", ()):
            yield f"- {hit['id'][len(prefix) :]}{untrusted}: {line}"


def code_last(store: ChunkStore, hits: list[Hit]) -> list[Hit]:
    """The hits, with those in code blocks moved to the end: pasted code would take the space of other lines."""
    chunks = store.get_many(list({hit.chunk_id for hit in hits}), track=False)
    code = {
        chunk_id: [(one.start, one.end) for one in blocks(chunk.content) if one.kind == CODE]
        for chunk_id, chunk in chunks.items()
        if "```" in chunk.content
    }
    return sorted(
        hits, key=lambda hit: any(start <= hit.start < end for start, end in code.get(hit.chunk_id, ()))
    )


def echoes_last(store: ChunkStore, hits: list[Hit]) -> list[Hit]:
    """The hits, with lines of an assistant that only repeat the user moved to the end.

    Long answers of an assistant often begin with a repetition, which matches the question as well as the user's own
    line.
    """
    analyser = get_analyser(store.config.search.language)
    user_terms: dict[str, set[str]] = defaultdict(set)
    for hit in hits:
        if hit.author and not is_assistant(hit.author):
            user_terms[hit.chunk_id].update(analyser.terms(hit.snippet))

    def echoes(hit: Hit) -> bool:
        if not is_assistant(hit.author) or hit.chunk_id not in user_terms:
            return False
        terms = set(analyser.terms(hit.snippet))
        return len(terms) >= _ECHO_TERMS and len(terms & user_terms[hit.chunk_id]) >= _ECHO_SHARE * len(terms)

    return sorted(hits, key=echoes)


def add_places(hits: Iterable[dict[str, Any]], summaries: Mapping[str, Summary]) -> None:
    """Number the hits of a day in order of time, if it has several: of two values the newer one is current."""
    days: dict[str, dict[tuple[float, str], list[dict[str, Any]]]] = {}
    for hit in hits:
        known = summaries[hit["id"]]
        days.setdefault(hit["at"][:10], {}).setdefault((known.at, known.created_at), []).append(hit)
    for moments in days.values():
        if len(moments) > 1:
            for place, moment in enumerate(sorted(moments), 1):
                for hit in moments[moment]:
                    hit["of_day"] = place


def add_headings(store: ChunkStore, hits: dict[str, dict[str, Any]], replies: int = _ADVISING) -> None:
    """Add the headings of the replies in the first hits, or to the turns in them, each reply once.

    Args:
        replies: most replies.
    """
    turns = StoreFunctions(store).turns
    answered: set[str] = set()
    for chunk_id in hits:
        if len(answered) == replies:
            break
        rows = turns(chunks=[chunk_id], points=True)
        row = next(filter(partial(_shows, hits[chunk_id]["lines"]), rows), next(iter(rows), None))
        if row is None or row["chunk_id"] in answered:
            continue
        room = _ADVISED_CHARS // replies
        points = [one for one in row["points"] if (room := room - len(one)) >= 0]
        if points:
            answered.add(row["chunk_id"])
            hits[chunk_id]["lines"].append(f"headings of the reply: {' | '.join(points)}")


def _shows(lines: Iterable[str], row: Mapping[str, Any]) -> bool:
    """Whether one of the lines of a hit is of the turn of a row; its chunk may begin with the end of another one."""
    text = one_line(row["text"], MAX_LINE_CHARS)
    pieces = (line.partition(": ")[2].strip("… ")[:_COMPARED] for line in lines)
    return any(piece in text for piece in pieces if piece)


def said_otherwise(
    store: ChunkStore, question: str, hits: Iterable[Mapping[str, Any]], chunks: int
) -> tuple[Mapping[str, Any], ...]:
    """Pairs of statements of the user that differ in what the question asks: a number, or whether something was done.

    Args:
        hits: what the opening shows.
        chunks: number of chunks in the store.
    """
    return _counted_otherwise(store, question, chunks) or _denied(store, question, hits)


def _denied(
    store: ChunkStore, question: str, hits: Iterable[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    """The first pair that denies what the question asks whether the user did; none if a hit shows a denial."""
    if _HAVE_I.match(question) is None:
        return ()
    analyser = get_analyser(store.config.search.language)
    asked = frozenset(analyser.terms(question[:1_000])) - phrasing_terms(analyser)
    lines = [(hit["id"], line) for hit in hits for line in hit["lines"]]
    first: tuple[Mapping[str, Any], ...] = ()
    for pair in StoreFunctions(store).contradictions(question, limit=_PAIRS_READ):
        for one in filter(itemgetter("match"), ({"match": "", **pair[side]} for side in ("newer", "older"))):
            shared = len(asked.intersection(analyser.terms(one["text"])))
            if not shared or shared < _DENIED_SHARE * len(asked):
                continue
            if any(one["chunk_id"] == where and one["match"] in line for where, line in lines):
                return ()
            first = first or (pair,)
    return first


def _counted_otherwise(store: ChunkStore, question: str, chunks: int) -> tuple[Mapping[str, Any], ...]:
    """The first pairs of statements of a chat with different numbers of the thing that the question counts.

    They also share another distinctive word of the question, if it has one: two drafts have two numbers of pages.

    Args:
        chunks: number of chunks in the store.
    """
    counted = _COUNTED.search(question[:1_000])
    if counted is None:
        return ()
    analyser = get_analyser(store.config.search.language)
    counted_terms = frozenset(analyser.terms(counted[1]))
    counts = store.candidate_source().term_counts(analyser.terms(question[:1_000]))
    distinctive = frozenset(term for term, number in counts.items() if 0 < number <= _RARE_SHARE * chunks)

    def is_same_count(pair: Mapping[str, Any]) -> bool:
        sides = pair["newer"], pair["older"]
        thing = counted_terms.intersection(*(analyser.terms(_counted_thing(one)) for one in sides))
        others = distinctive - thing
        return bool(thing) and (
            not others or bool(others.intersection(*(analyser.terms(one["text"]) for one in sides)))
        )

    pairs = filter(is_same_count, StoreFunctions(store).updates(question, limit=_PAIRS_READ))
    return tuple(islice(pairs, _MAX_COUNTS))


def _counted_thing(statement: Mapping[str, Any]) -> str:
    """The word after the number of a statement."""
    return str(statement.get("match", "")).partition(" ")[2]


def differing_listed(pairs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each pair of statements, the newer first, each shortened around what differs."""
    for pair in pairs:
        yield " <- before: ".join(map(_around_match, (pair["newer"], pair["older"])))


def _around_match(statement: Mapping[str, Any]) -> str:
    text = statement["text"]
    start = max(0, text.find(statement.get("match", "")) - _BEFORE_MATCH)
    start = text.find(" ", start) + 1 if start else 0
    return f"{statement['chunk_id']} {statement['date']}: {one_line(text[start:], _DIFFERING_CHARS)}"

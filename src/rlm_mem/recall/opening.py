"""The opening of a run: the question, figures of the store, and the best snippets or an outline.

All text from the store is between tags that it cannot close, marked as data.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import chain, islice, zip_longest
from operator import attrgetter, itemgetter, methodcaller
from typing import TYPE_CHECKING, Any

from msgspec import field

from rlm_mem import search as searching
from rlm_mem.chunk.types import is_untrusted, outside, untrusted_mark
from rlm_mem.ingest.chunking import states_choice
from rlm_mem.recall.listing import (
    WORD,
    add_headings,
    add_places,
    by_day,
    code_last,
    common_prefix,
    differing_listed,
    echoes_last,
    lacking_words,
    said_otherwise,
    wishes_listed,
)
from rlm_mem.recall.prompts import clip, fenced
from rlm_mem.recall.question_kinds import (
    FROM_EXCERPTS,
    Outlined,
    asks_for_several,
    counting_task,
    often_lacking,
    outlined,
    parts_of,
    subject_of,
    weighs_several,
)
from rlm_mem.record import FrozenRecord
from rlm_mem.sandbox.arguments import shortened
from rlm_mem.sandbox.functions import StoreFunctions
from rlm_mem.sandbox.line_functions import speakers, users_of
from rlm_mem.search.query import analyse_query, question_kind
from rlm_mem.search.snippets import snippet
from rlm_mem.text.analysis import Analyser, get_analyser
from rlm_mem.text.instructions import condition_of, standing_instructions
from rlm_mem.text.patterns import late

if TYPE_CHECKING:
    from rlm_mem.search import Hit
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.records import Summary

_HEADING = late(r"(?:#{1,6} |\*\*)[^\n]{0,80}+\s*+\Z")
_NAME = late(r"(?<=[a-z,] )[A-Z][a-z][\w-]{1,30}")
_FEWEST_WORDS = 5
"""Fewest words of a line without a speaker in chunks of more than ``_NOTE`` tokens; shorter lines are left out."""
_NOTE = 20
"""Most tokens of a chunk whose short lines and headings are shown, too."""
_MAX_UNSAID = 4
"""Most lines without a speaker that are shown of one chunk, since items of a list often match together."""
_ADVICE = late(
    r"\b(?:(?:should|shall|could|can|might) (?:I|we)|(?:I|we) should|(?:would|do) you (?:say|think)|"
    r"how (?:do|would) (?:I|we)|help me|suggest\w*|recommend\w*|advi[cs]e|tips|"
    r"(?:explain|(?:show|teach|tell|walk|guide|talk) me)(?: to me)?(?: through)?(?: step by step)?,? how)\b",
    re.IGNORECASE,
)
"""Matches a question that asks for advice or an explanation, and some that do not."""
_ADVISED = late(
    r"\b(?:(?:did|had|have) you|you(?:['’]ve)? (?:[^\W\d_]{2,12}ed|gave|told|said)|your (?:advice|suggestions?))\b",
    re.IGNORECASE,
)
"""Matches a question about what the assistant said."""
_OWN = late(r"\b(?:I|my|we|our|mine)\b")
"""Matches a question that may be about the user; with ``_ADVICE`` it is not."""
_USER_LINES, _OF_PART = 50, 2
"""Most segments of the user that are searched for, by a question, with preferences and decisions, and by each part."""
_MAX_CHOICES = 4
_WISHING = "always never whenever please immer nie toujours jamais siempre nunca sempre mai"
"""Words of standing wishes: segments with one of them are searched for, then checked by rules."""
_WISHES_SOUGHT, _MAX_WISHES, _WISH_CHARS = 60, 5, 200
_FEW_WISHES_CHARS = 500
"""If the wishes have at most so many characters, all are shown for a question for advice, which may share no
words."""
_FACTS = frozenset(("how_long", "how_many", "when", "where", "who", "yes_no"))
"""Kinds of questions for one fact, to which few wishes for the form of an answer apply."""
_OPENING_BYTES = 2_400
"""Most bytes of the snippets of an opening: about 600 tokens of English."""
_SEVERAL_CHUNKS, _SEVERAL_BYTES = 40, 4_000
"""Most chunks and bytes for a question for several things."""
_WHOLE_LINES, _SHORT_LINE = 6, 140
"""The best snippets of such an opening, which are shown whole, and most characters of the others."""
_HEAD_BYTES = 40
_NAME_CHARS = 60
"""Most characters of a tag, a speaker or the id of a conversation."""


class Opening(FrozenRecord, frozen=True):
    """The first message of a run: the question, figures of the store, and the best snippets.

    Args:
        question: as the user wrote it.
        store: counts, tags and the time span.
        hits: the ranker's chunks for the raw question, best first, one mapping each: ``id``, ``type``, ``at``,
            ``tokens``, ``score``, ``lines`` (the snippets, speaker first), and tags and the like if it has any, and
            ``of_day`` (its place among the hits of its day in order of time) if that day has several. In an outline
            they are in order of time and have ``outline``; a line is a turn, with headings of the reply (``headed``),
            and the score is relative to the best turn's 1. For a question for several things, they are in order of
            time and have ``by_time``.
        task: the kind of answer wanted, or empty.
        wishes: standing wishes of the user that may apply, in the same format as hits; left out in a small window.
        more_wishes: number of other wishes.
        more: how to get what an outline leaves out.
        lacking: words of the question that no hit has (:func:`lacking_words`).
        differing: pairs of statements of the user that differ in what the question asks (:func:`said_otherwise`).
        closing: when to answer, and when to write a program.
    """

    question: str
    store: dict[str, Any] = field(default_factory=dict)
    hits: tuple[dict[str, Any], ...] = ()
    task: str = ""
    wishes: tuple[dict[str, Any], ...] = ()
    more_wishes: int = 0
    more: str = ""
    lacking: str = ""
    differing: tuple[Mapping[str, Any], ...] = ()
    closing: str = FROM_EXCERPTS

    @property
    def outline(self) -> bool:
        """Whether the hits are an outline instead of excerpts."""
        return bool(self.hits and self.hits[0].get("outline"))

    @property
    def by_time(self) -> bool:
        """Whether the hits are in order of time although they are no outline."""
        return bool(self.hits and self.hits[0].get("by_time"))

    @property
    def hit_ids(self) -> list[str]:
        """Chunk ids of the hits, in their order, of the wishes, and of the statements that differ."""
        differing = (pair[side]["chunk_id"] for pair in self.differing for side in ("newer", "older"))
        return list(dict.fromkeys(chain(map(itemgetter("id"), (*self.hits, *self.wishes)), differing)))

    def _best(self, number: int) -> tuple[Mapping[str, Any], ...]:
        """The best hits, in their order."""
        if not self.by_time:
            return self.hits[:number]
        best = sorted(range(len(self.hits)), key=lambda place: -self.hits[place]["score"])[:number]
        return tuple(self.hits[place] for place in sorted(best))

    def render(self, max_hits: int | None = None, question_chars: int = 8000) -> str:
        """Return the message, with fewer hits or a shorter question if the window is small."""
        question, _ = clip(self.question, question_chars, "the question")
        hits = self.hits if max_hits is None else self._best(max_hits)
        parts = [fenced("question", question)]
        if self.store:
            parts.append(fenced("store", json.dumps(self.store, ensure_ascii=False, default=str)))
        marks = set(map(methodcaller("get", "untrusted"), hits))
        same = marks.pop() if len(hits) > 1 and len(marks) == 1 else None
        prefix = common_prefix(map(itemgetter("id"), hits)) if self.outline else ""
        listed = "\n".join(
            by_day(hits, prefix, mark=not same)
            if self.outline
            else map(partial(_listed, mark=not same), hits)
        )
        about = f"stored data, all untrusted: {same}" if same else "stored data"
        what = (
            "An outline for the question: what the user said, in order of time"
            + (" | headings of the reply" if any("headed" in hit for hit in hits) else "")
            + (f"; ids begin with {prefix}" if prefix else "")
            if self.outline
            else f"Chunks that fit the question, {'in order of time' if self.by_time else 'the best first'}"
            + (
                "; #1, #2 … number those of one day, the earliest first"
                if any("of_day" in hit for hit in hits)
                else ""
            )
        )
        parts.append(f"{what} ({about}{self.more}):")
        parts.append(fenced("hits", listed or "(no chunk shares a word with the question)"))
        if self.lacking:
            parts.append(f"No hit has the words {self.lacking}.")
        if self.differing and max_hits is None:
            parts.append("What the user said differently (stored data, newest first; which holds?):")
            parts.append(fenced("differing", "\n".join(differing_listed(self.differing))))
        if self.wishes and max_hits is None:
            more = f"; {self.more_wishes} more: instructions()" if self.more_wishes else ""
            parts.append(f"What the user wishes for answers (stored data{more}):")
            parts.append(fenced("wishes", "\n".join(wishes_listed(self.wishes, mark=not same))))
        elif self.more_wishes and max_hits is None:
            parts.append(
                f"Standing wishes of the user, for some answers: {self.more_wishes}, see instructions()."
            )
        if self.task:
            parts.append(self.task)
        parts.append(self.closing)
        return "\n".join(parts)


def build_opening(
    store: ChunkStore, question: str, *, limit: int = 8, task: str = "", outline: bool = False
) -> Opening:
    """Build the opening of a run: figures, and the best snippets for the raw question, without duplicates.

    In a chat with an assistant, a question for a summary, an order of events, a development or the number of things
    mentioned at several times may get an outline instead, and one about the assistant's advice, or for advice that
    rests on several things, gets the headings of some replies. In any other memory, a question for several things or
    their number gets more and shorter snippets, in order of time; in a chat, one for a sum.

    Args:
        limit: most chunks; their snippets have some 600 tokens at most in all.
        outline: for a host, whether it may be an outline, of some 4,500 to 12,500 characters with all else, or have
            more snippets.

    Raises:
        InvalidQuery: the question cannot be searched for.
    """
    users = users_of(store) if limit else ()
    wishes, more_wishes = _wishes(store, question, min(users)) if users else ((), 0)
    figures = store_figures(store)
    kind = outlined(question, figures["chunks"]) if outline and users else None
    rows, more = _outline(store, question, kind) if kind is not None else ((), "")
    if kind is not None and rows:
        return Opening(
            question,
            figures,
            rows,
            f"{kind.task}\n{task}".strip(),
            wishes,
            more_wishes,
            more=more,
            differing=said_otherwise(store, question, rows, figures["chunks"]),
            closing=kind.closing,
        )
    several = outline and limit > 0 and asks_for_several(question, chat=bool(users))
    most = _SEVERAL_CHUNKS if several else limit
    hits = _hits(store, question, most, users, wishes, several=several) if limit else {}
    if users and _ADVISED.search(question):
        add_headings(store, hits)
    elif users and outline and weighs_several(question):
        add_headings(store, hits, replies=limit)
    differing: tuple[Mapping[str, Any], ...] = ()
    if outline and users:
        task = f"{often_lacking(question)}\n{task}".strip()
        differing = said_otherwise(store, question, hits.values(), figures["chunks"])
    elif several:
        task = f"{counting_task(question)}\n{task}".strip()
    return Opening(
        question,
        figures,
        tuple(hits.values()),
        task,
        wishes,
        more_wishes,
        lacking=lacking_words(store, question, hits.values(), figures["chunks"]) if hits else "",
        differing=differing,
    )


def _hits(
    store: ChunkStore,
    question: str,
    limit: int,
    users: Collection[str],
    wishes: Iterable[Mapping[str, Any]],
    *,
    several: bool = False,
) -> dict[str, dict[str, Any]]:
    """The best chunks for a question by id, with the snippets that have room beside the wishes.

    Args:
        several: whether the question asks for several things: then the snippets are more and, after the first, shorter,
            and the chunks are in order of time.
    """
    found = _best_lines(store, question, 3 * limit, users)
    analyser = get_analyser(store.config.search.language)
    query = analyse_query(question, analyser)
    ids = dict.fromkeys(map(attrgetter("chunk_id"), found))
    summaries = {one.id: one for one in store.summaries(list(ids))}
    hits: dict[str, dict[str, Any]] = {}
    starts: dict[str, list[int]] = {}
    listed = {f"{user}: {line}" for user in users for one in wishes for line in one["lines"]}
    wish_bytes = sum(_HEAD_BYTES + len(one["lines"][0].encode("utf-8", "replace")) for one in wishes)
    room = (_SEVERAL_BYTES if several else _OPENING_BYTES) - max(0, wish_bytes - _FEW_WISHES_CHARS)
    for hit in code_last(store, echoes_last(store, found)) if users else found:
        text = hit.snippet
        if several and sum(map(len, starts.values())) >= _WHOLE_LINES:
            text = snippet(text, 0, len(text), query, analyser, _SHORT_LINE)
        named = not hit.author or hit.author in text[:60]
        line = text if named else f"{hit.author}: {text}"
        summary = summaries.get(hit.chunk_id)
        known = hit.chunk_id in hits
        if summary is None or line in listed or (not known and len(hits) == limit):
            continue
        short = not hit.author and len(hit.snippet.split()) < _FEWEST_WORDS
        if (short or _HEADING.match(hit.snippet)) and summary.tokens > _NOTE:
            continue  # leave the space to a line with content
        if not hit.author and len(starts.get(summary.id, ())) >= _MAX_UNSAID:
            continue
        room -= len(line.encode("utf-8", "replace")) + (0 if known else _HEAD_BYTES)
        if room < 0:
            break
        listed.add(line)
        if not known:
            hits[summary.id] = _metadata(summary, hit.score) | hit.ended() | {"same_subject": hit.marks()}
            starts[summary.id] = []
        place = bisect(starts[summary.id], hit.start)  # in the order of the text
        starts[summary.id].insert(place, hit.start)
        hits[summary.id]["lines"].insert(place, line)
    add_places(hits.values(), summaries)
    if several:
        ordered = sorted(hits, key=lambda one: (summaries[one].at, summaries[one].created_at))
        return {one: hits[one] | {"by_time": True} for one in ordered}
    return hits


def _outline(store: ChunkStore, question: str, kind: Outlined) -> tuple[tuple[dict[str, Any], ...], str]:
    """The outline for a question as hits in order of time, and how to get what it leaves out."""
    functions = StoreFunctions(store)
    analyser = get_analyser(store.config.search.language)
    rows = functions.account(subject_of(question, analyser), kind.chars, points=kind.points, every=kind.every)
    summaries = {one.id: one for one in store.summaries([row["chunk_id"] for row in rows])}
    hits: dict[str, dict[str, Any]] = {}
    for row in rows:
        if summary := summaries.get(row["chunk_id"]):
            hit = hits.setdefault(summary.id, _metadata(summary, row["score"]) | {"outline": True})
            hit["lines"].append(" | ".join([row["text"], *row["points"]]))
            if row["points"]:
                hit["headed"] = True
    cut = functions.cut.remark().partition(";")[0]
    found = cut or "all turns that share a word with the question are here"
    return tuple(
        hits.values()
    ), f"; {found}; others: print_rows(outline([WORDS], chars=2500, points=False, unseen=True))"


def _wishes(store: ChunkStore, question: str, user: str) -> tuple[tuple[dict[str, Any], ...], int]:
    """The standing wishes of the user in a chat with an assistant that may apply, and the number of others.

    If none applies to a question for one fact or about the user, the others are not counted. Wishes are searched for
    by typical words, so some may be missing; ``instructions`` finds all.
    """
    found: dict[str, Hit] = {}
    for hit in searching.search(
        store, _WISHING, limit=_WISHES_SOUGHT, by="segment", filters={"speaker": user}
    ):
        claimed = is_untrusted(hit.trust) and hit.origin != "import"
        if not hit.ended() and not claimed:
            for wish, _ in standing_instructions(hit.snippet.partition(": ")[2] or hit.snippet):
                if not wish.startswith("…"):  # else its beginning is missing
                    found.setdefault(wish, hit)
    advice = _ADVICE.search(question) is not None and _ADVISED.search(question) is None
    if advice and sum(map(len, found)) <= _FEW_WISHES_CHARS:
        first = found
    else:
        applies = _applying(question, get_analyser(store.config.search.language))
        first = dict(islice(((wish, hit) for wish, hit in found.items() if applies(wish)), _MAX_WISHES))
    summaries = {one.id: one for one in store.summaries([hit.chunk_id for hit in first.values()])}
    shown = tuple(
        _metadata(summaries[hit.chunk_id], hit.score) | {"lines": [wish[:_WISH_CHARS]]}
        for wish, hit in first.items()
        if hit.chunk_id in summaries
    )
    own = _OWN.search(question) is not None and not advice
    counted = shown or (question_kind(question) not in _FACTS and not own)
    return shown, len(found) - len(shown) if counted else 0


def _applying(question: str, analyser: Analyser) -> Callable[[str], bool]:
    """Return a test whether a wish may apply: if it has no condition, or one about what the question asks.

    A question for one fact must share half of the words of the condition, or ask for what the wish names ("When …",
    "Always give dates …"), and one for an account or about earlier advice all words, since it has many words of its
    subject; another question must share one.
    """
    kind = question_kind(question)
    told_again = outlined(question, 0) is not None or _ADVISED.search(question) is not None
    wishing = frozenset(analyser.terms(f"{_WISHING} ask"))
    asked = frozenset(analyser.terms(question)) - wishing

    def applies(wish: str) -> bool:
        condition = condition_of(wish)
        terms = frozenset(analyser.terms(condition)) - wishing
        shared = len(terms & asked)
        if condition and told_again:
            return terms <= asked
        if not condition or kind not in _FACTS:
            return not condition or shared > 0
        words = (word.rstrip("s") for word in WORD.findall(wish))
        return 2 * shared >= max(1, len(terms)) or any(question_kind(f"which {one}") == kind for one in words)

    return applies


def _best_lines(store: ChunkStore, question: str, limit: int, users: Collection[str]) -> list[Hit]:
    """The segments that match a question best.

    In a chat with an assistant, segments of the user alternate with the others, which the assistant's long texts
    would dominate. Names in the question that fewer than a quarter of the segments contain are searched for
    separately, and these hits alternate with the rest. So do the best hits of each of several things that the
    question names, of which one would dominate, and, if the question asks for advice, preferences and decisions of the
    user, which share few words with it.
    """
    speaker = {"speaker": min(users)} if users else None
    whole = searching.search(store, question, limit=limit, by="segment")
    rankings = [whole]
    if users:
        advice = _ADVICE.search(question) is not None
        found = searching.search(store, question, limit=_USER_LINES, by="segment", filters=speaker)
        whole = [*whole, *found]
        # What the assistant said may be found by its own words only.
        rankings.insert(1 if _ADVISED.search(question) else 0, found[:limit])
        rankings[:0] = [
            searching.search(store, part, limit=_OF_PART, by="segment", filters=speaker)
            for part in parts_of(question)
            if WORD.search(part)
        ]
        if advice:
            rankings.insert(0, [hit for hit in found if states_choice(hit.snippet)][:_MAX_CHOICES])
    names = dict.fromkeys(_NAME.findall(question))
    missing = _missing(names, chain.from_iterable(rankings)) if names else ""
    if missing:
        rankings.insert(0, searching.search(store, missing, limit=limit, by="segment", filters=speaker))
    # A segment has the snippet for the whole question, if that found it.
    by_question = {(hit.chunk_id, hit.start): hit for hit in whole}
    lines: dict[tuple[str, int], Hit] = {}
    for hit in chain.from_iterable(zip_longest(*rankings)):
        if hit is not None:
            place = hit.chunk_id, hit.start
            lines.setdefault(place, by_question.get(place, hit))
    return list(lines.values())


def _missing(names: Iterable[str], hits: Iterable[Hit]) -> str:
    """The names that fewer than a quarter of the hits contain."""
    texts = [f"{hit.author}\n{hit.snippet}".casefold() for hit in hits]
    return " ".join(name for name in names if sum(name.casefold() in one for one in texts) < len(texts) / 4)


def _metadata(summary: Summary, score: float) -> dict[str, Any]:
    line: dict[str, Any] = {
        "id": summary.id,
        "type": summary.type,
        "at": (summary.occurred_at or summary.created_at)[:16],
        "tokens": summary.tokens,
        "score": round(float(score), 2),
        "lines": [],
    }
    if summary.tags:
        line["tags"] = [shortened(tag, _NAME_CHARS) for tag in summary.tags[:5]]
    if summary.conversation_id:
        line["conversation"] = shortened(summary.conversation_id, _NAME_CHARS)
    if summary.superseded_by:
        line["superseded_by"] = summary.superseded_by
    line |= outside(summary.origin, summary.trust)
    return line


def _listed(hit: Mapping[str, Any], *, mark: bool = True) -> str:
    """A hit as shown to the model: its id, day and place within the day, then its snippets.

    Args:
        mark: whether an untrusted hit is marked.
    """
    replaced = f" (out of date: superseded_by {hit['superseded_by']})" if hit.get("superseded_by") else ""
    replaced = replaced or (f" (out of date since {hit['ended_at'][:10]})" if hit.get("ended_at") else "")
    place = f" #{hit['of_day']}" if "of_day" in hit else ""
    head = f"{hit['id']} {str(hit.get('at', ''))[:10]}{place}{replaced}{untrusted_mark(hit) if mark else ''}"
    return "\n- ".join([head, *hit.get("lines", ()), *hit.get("same_subject", ())])


def store_figures(store: ChunkStore) -> dict[str, Any]:
    """The figures of the store shown to a model: counts, most frequent tags, time span, speakers."""
    stats = store.totals()
    figures: dict[str, Any] = {"chunks": stats["chunk_count"]}
    if stats.get("conversations"):
        figures["conversations"] = stats["conversations"]
    if stats.get("first_at"):
        figures["from"], figures["to"] = str(stats["first_at"])[:10], str(stats["last_at"])[:10]
    who = speakers(store)
    if who:
        figures["speakers"] = [shortened(name, _NAME_CHARS) for name in who]
    tags = store.tag_counts(12)
    if tags:
        figures["tags"] = {shortened(tag, _NAME_CHARS): count for tag, count in tags}
    return figures

"""Questions: their terms, the people and dates they name, and what kind of answer they want.

Nothing here looks at a store but through `known_authors`. A question of any length, in any script, is accepted: only
its first `MAX_CHARACTERS` are read and only its `MAX_TERMS` most telling terms are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from rlm_mem.store.core.segments import AUTHOR_PREFIX
from rlm_mem.text.analysis import Analyser, fold, is_han, words
from rlm_mem.text.dates import DateMention, find_dates

#: Characters of a question that are read, and distinct terms that are kept. Longer questions are documents pasted
#: into the search box; the words that are rarest in the store speak for them (see `rarest`).
MAX_CHARACTERS = 4_000
MAX_TERMS = 48
#: Distinct terms that `rarest` chooses from.
MOST_READ = 1_000

#: At most this many alternatives (near-spellings, members of classes) are added to the words.
MAX_ALTERNATIVES = 96

WORD, REPAIR, RELATED = 0, 1, 2
#: Weight of a class member in the first stage, relative to the word it stands for.
RELATED_WEIGHT = 0.4

# Words that ask rather than tell: they stay searchable at a lower weight (general English, not from any corpus).
_WEAK_WORDS = """
type kind sort mention mentioned describe described discuss discussed say said tell told talk talked speak
share shared conversation conversations recent recently time times thing things plan planning planned
happen happened currently specific particular certain different various according call called name named
consider considered likely would could main primary reason way ways new try tried trying start started
begin decide decided want wanted people person participate participated engage engaged involve involved
attend attended express expressed receive received current
"""
#: Weight of a term that asks rather than tells, relative to 1.
WEAK = 0.6
#: The same for an everyday word ("like", "will") that is not written as a name, and for a single Han character beside
#: the pairs that it is in. Where a question has nothing else they count in full.
EVERYDAY = 0.25
SINGLE = 0.3

# The first pattern that matches names the kind. Patterns are tried at the first question word ("… when Tim was young,
# who helped?" asks who), the particular before the general.
_ASKS = re.compile(r"\b(?:what|which|when|where|who|whom|whose|why|how)\b", re.IGNORECASE)
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("how_long", r"how (?:long|old)\b|what (?:age|duration)\b|how many (?:years|months|weeks|days|hours)\b"),
        ("how_many", r"how (?:many|much|often|frequently)\b|what (?:number|amount|percentage)\b"),
        ("when", r"when\b|(?:what|which) (?:date|day|year|month|time|week|season)\b"),
        (
            "where",
            r"where\b|(?:what|which) (?:\w+ )?(?:city|cities|country|countries|places?|states?|"
            r"locations?|town|island|area)s?\b",
        ),
        (
            "why",
            r"why\b|what (?:\w+ ){0,3}?reasons?\b|what (?:inspired|motivat\w+|made|caused|led|"
            r"prompted|drives?)\b|how come\b",
        ),
        ("who", r"who(?:m|se)?\b|(?:what|which) (?:person|people|friend|author|artist|band|singer|musician)s?\b"),
        (
            "feeling",
            r"how (?:did|does|do|has|was|is|were) .{0,200}\b(?:feel|felt|react|reaction|describe)|"
            r"what (?:was|is|were) .{0,200}\b(?:reaction|feeling|emotion|mood|attitude)",
        ),
        (
            "opinion",
            r"what (?:does|did|do|is|was) .{0,200}\b(?:think|thinks|believe|opinion|advice|suggest\w*|"
            r"recommend\w*|symboli[sz]e|represent|mean|remind)\b|how does .{0,200} view\b",
        ),
        (
            "title",
            r"(?:what|which) (?:\w+ ){0,3}?(?:books?|songs?|movies?|films?|shows?|games?|album|"
            r"series|titles?|names?|novels?|brands?|quotes?|posters?)\b|what .{0,200}\b(?:called|named|"
            r"titled)\b",
        ),
        ("how", r"how\b"),
        ("what", r"(?:what|which)\b"),
    )
)  # fmt: skip
_WOULD = re.compile(r"^(?:would|could|might|is it likely)\b|\b(?:likely|potentially|might)\b", re.IGNORECASE)
_YES_NO = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|can|should|will)\b", re.IGNORECASE)
_PLURAL_WANTED = re.compile(
    r"\b(?:what|which) (?:\w+ ){0,2}?(?!was\b|is\b|does\b|has\b|this\b)\w{3,}s\b(?! name)|"
    r"\bwhat (?:all|else)\b|\bhow many\b|\ball (?:the )?\w+s\b|"
    r"\b(?:list|types|kinds) of\b|\bwhat has\b|\bwhere (?:has|have)\b|\bhow (?:has|have)\b|\bboth\b|\bin what ways\b",
    re.IGNORECASE,
)
# "before the move", "after her operation": an event that stands for its date.
_ANCHOR = re.compile(
    r"\b(?P<way>before|after|since|until|following|prior to)\s+"
    r"(?P<event>(?:the|a|an|my|our|his|her|their|its|\w+ing|\w+'s)\b(?:\s+[\w'-]+){0,5})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """An event that a question uses as a date: what is wanted lies `before` it, or else after it.

    `terms` are those of the question's terms that name the event.
    """

    before: bool
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A question, analysed.

    `terms` are distinct: first the words of the question in order of appearance, then near-spellings, then members of
    the classes it names. `weights` (0–1) say how much each counts in the first stage, `roles` which of the three it
    is (`WORD`, `REPAIR`, `RELATED`), `concepts` the number of the word it is or stands for. `authors` are the known
    authors it names (as given in
    `known_authors`); their names are not among the terms. `dates` are the days it names, `kind` what it asks for
    ("when", "where", "why", … or "words" for bare keywords), `wants_list` whether it asks for several things.
    `anchor` is the event it dates by ("before the move"), `now` the reference of relative dates.
    """

    text: str
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    concepts: tuple[int, ...]
    roles: tuple[int, ...] = ()
    authors: tuple[str, ...] = ()
    dates: tuple[DateMention, ...] = ()
    kind: str = "words"
    wants_list: bool = False
    anchor: Anchor | None = None
    now: datetime | None = None

    def __post_init__(self) -> None:
        if len(self.roles) != len(self.terms):  # terms given without roles are words
            object.__setattr__(self, "roles", (WORD,) * len(self.terms))


def analyse_query(
    text: str,
    analyser: Analyser,
    *,
    now: datetime | None = None,
    known_authors: Collection[str] = (),
) -> Query:
    """Analyse a question.

    Args:
        text: the question, any language, any length.
        analyser: the analyser that the store was written with.
        now: reference for "last week" and the like; None leaves relative dates out.
        known_authors: names of the people and agents whose words the store holds.

    Never raises on odd text; a question without any searchable word has no terms.
    """
    question = text[:MAX_CHARACTERS]
    authors, used = _named_authors(question, known_authors)
    dates = tuple(find_dates(question, now))
    weights: dict[str, float] = {}
    weak = {analyser.stem(word) for word in _WEAK_WORDS.split()} if analyser.language == "english" else set()
    for term, start, end in analyser.located_terms(question, indexed=True):
        if start in used:
            continue
        weight = WEAK if term in weak else 1.0
        if end - start > 1 == len(term) and is_han(term):
            weight = SINGLE
        elif analyser.is_stop(fold(question[start:end])) and not (start and question[start].isupper()):
            weight = EVERYDAY
        weights[term] = max(weights.get(term, 0.0), weight)
    if not weights and used:  # nothing but names: then the names are what is looked for
        for term in analyser.terms(question):
            weights[term] = 1.0
    most = max(weights.values(), default=1.0)
    weights = {term: weight / most for term, weight in weights.items()}
    kept = list(weights)[:MOST_READ]
    return Query(
        text=question,
        terms=tuple(kept),
        weights=tuple(weights[term] for term in kept),
        concepts=tuple(range(len(kept))),
        roles=(WORD,) * len(kept),
        authors=authors,
        dates=dates,
        kind=question_kind(question),
        wants_list=bool(_PLURAL_WANTED.search(question)),
        anchor=_anchor(question, analyser, kept, dates),
        now=now,
    )


def question_kind(text: str) -> str:
    """What a question asks for: "when", "where", "why", "who", …; "words" for bare keywords."""
    stripped = text.strip()
    if _WOULD.search(stripped):
        return "would"
    if _YES_NO.match(stripped):
        return "yes_no"
    asks = _ASKS.search(stripped)
    if asks:
        for kind, pattern in _KINDS:
            if pattern.match(stripped, asks.start()):
                return kind
    return "words"


def with_alternatives(query: Query, alternatives: Iterable[tuple[str, str, float, int]]) -> Query:
    """Add alternatives: each (word, alternative, weight, role) joins the concept of its word, if that is a term."""
    terms, weights = list(query.terms), list(query.weights)
    concepts, roles = list(query.concepts), list(query.roles)
    seen = set(terms)
    for word, alternative, weight, role in alternatives:
        if word not in seen or alternative in seen:
            continue
        if len(terms) >= MAX_TERMS + MAX_ALTERNATIVES:
            break
        place = terms.index(word)
        terms.append(alternative)
        weights.append(weights[place] * weight)
        concepts.append(concepts[place])
        roles.append(role)
        seen.add(alternative)
    return replace(
        query, terms=tuple(terms), weights=tuple(weights), concepts=tuple(concepts), roles=tuple(roles)
    )


def rarest(query: Query, term_counts: Callable[[list[str]], Mapping[str, int]]) -> Query:
    """`query` with no more than `MAX_TERMS` terms: those of a long one that are in the fewest chunks of the store.

    Of terms that the store lacks a few are kept, since they may be misspelt. `term_counts` gives, for each of some
    terms that the store holds, the number of chunks with it.
    """
    if len(query.terms) <= MAX_TERMS:
        return query
    counts = term_counts(list(query.terms))
    known = sorted(
        (i for i, t in enumerate(query.terms) if counts.get(t)), key=lambda i: counts[query.terms[i]]
    )
    unknown = [i for i, t in enumerate(query.terms) if not counts.get(t)]
    kept = sorted([*known[:MAX_TERMS], *unknown[: max(0, MAX_TERMS - len(known))]])
    anchor = query.anchor
    terms = tuple(query.terms[i] for i in kept)
    if anchor is not None:
        named = tuple(term for term in anchor.terms if term in terms)
        anchor = replace(anchor, terms=named) if named else None
    return replace(
        query,
        terms=terms,
        weights=tuple(query.weights[i] for i in kept),
        concepts=tuple(range(len(kept))),
        roles=(WORD,) * len(kept),
        anchor=anchor,
    )


def with_related(query: Query, analyser: Analyser) -> Query:
    """Add the members of the everyday classes that the question names ("instrument" → "violin", …)."""
    from rlm_mem.search.relations import related_terms

    found = [
        (term, member, RELATED_WEIGHT, RELATED)
        for term, weight in zip(query.terms, query.weights, strict=True)
        if weight > WEAK
        for member in related_terms(term, analyser)
    ]
    return with_alternatives(query, found)


def with_authors(query: Query, known_authors: Collection[str]) -> Query:
    """Add the people and agents that the question names to its terms: what they say is found by their names.

    The index keeps who speaks a segment apart from the words of the segment.
    """
    names = [AUTHOR_PREFIX + name for name in _named_authors(query.text, known_authors)[0]]
    if not names:
        return query
    first = len(query.terms)
    return replace(
        query,
        terms=(*query.terms, *names),
        weights=query.weights + (1.0,) * len(names),
        concepts=(*query.concepts, *range(first, first + len(names))),
        roles=query.roles + (WORD,) * len(names),
    )


def by_names(query: Query, analyser: Analyser) -> Query:
    """`query` reduced to the people and agents that it names: as words, and as those who speak."""
    words_of = dict.fromkeys(term for name in query.authors for term in analyser.indexed_terms(name))
    terms = (*words_of, *(AUTHOR_PREFIX + name for name in query.authors))
    return replace(
        query,
        terms=terms,
        weights=(1.0,) * len(terms),
        concepts=tuple(range(len(terms))),
        roles=(WORD,) * len(terms),
        anchor=None,
    )


@lru_cache(maxsize=16)
def _authors_by_part(authors: frozenset[str]) -> dict[str, list[str]]:
    """Authors by each part of their name; kept, since a large store has thousands and they seldom change."""
    by_part: dict[str, list[str]] = {}
    for author in sorted(authors):
        for part in fold(author).split():
            if len(part) > 1:
                by_part.setdefault(part, []).append(author)
    return by_part


def _anchor(
    question: str, analyser: Analyser, terms: Collection[str], dates: Iterable[DateMention]
) -> Anchor | None:
    """The event that stands for a date, unless a date itself follows ("after 3 May")."""
    match = _ANCHOR.search(question)
    if match is None or any(match.start() <= mention.start < match.end() for mention in dates):
        return None
    named = tuple(dict.fromkeys(t for t in analyser.terms(match["event"]) if t in terms))
    before = match["way"].lower() in ("before", "until", "prior to")
    # Where the event is all there is, the question is about the event.
    return Anchor(before, named) if named and len(named) < len(terms) else None


def _named_authors(question: str, known_authors: Collection[str]) -> tuple[tuple[str, ...], set[int]]:
    """Known authors named in the question, and the offsets of the words that name them.

    A full name, its first or last part, or a nickname of three or more letters that begins it ("Mel" for "Melanie")
    counts; the word must be capitalised unless it equals the name.
    """
    by_part = _authors_by_part(frozenset(known_authors))
    named: dict[str, None] = {}
    used: set[int] = set()
    if not by_part:
        return (), used
    for word, start, _ in words(question):
        plain = fold(word).removesuffix("'s").rstrip("'")
        found = by_part.get(plain)
        if found is None and len(plain) >= 3 and word[:1].isupper() and start > 0:
            found = [a for part, owners in by_part.items() if part.startswith(plain) for a in owners]
            found = found if len(set(found)) == 1 else None
        if found:
            used.add(start)
            named.update(dict.fromkeys(found))
    return tuple(named), used

"""Analyse questions: their terms, the people and dates they name, and the kind of answer they ask for.

The store is reached only through `known_authors` and `term_counts`. A question of any length, in any script, is
accepted: only its first `MAX_CHARACTERS` are read, and of its terms only the `MAX_TERMS` rarest are kept.

A word that is not in the store is replaced by stored words one edit away. These are found by deleting, replacing or
inserting one letter of the word or swapping two adjacent ones, so no extra index is needed and the vocabulary is
always current. Only words that occur nowhere are repaired, and never short ones, numbers or identifiers: one typo
costs five points of recall, of which repair restores four (docs/benchmarks/retrieval.md).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import cache, lru_cache
from itertools import chain
from math import log1p
from string import ascii_lowercase

from msgspec import Struct, structs

from rlm_mem.record import FrozenRecord
from rlm_mem.search.related import related_terms
from rlm_mem.store.core.encoding import AUTHOR_PREFIX
from rlm_mem.store.core.lookup import CandidateSource, JoinedSource, sources_of
from rlm_mem.text.analysis import Analyser, fold, get_analyser, is_han, says_i, words
from rlm_mem.text.dates import DateMention, find_dates, other_names_of_month
from rlm_mem.text.defaults import DEFAULT_ASKED
from rlm_mem.text.languages import ASKING, language_of
from rlm_mem.text.patterns import late, signed
from rlm_mem.text.stopwords import stop_words

#: Characters of a question that are read, and distinct terms that are kept. Longer questions are documents pasted
#: into the search box; the terms that are rarest in the store are kept (see `rarest`).
MAX_CHARACTERS = 4_000
MAX_TERMS = 48
#: Most distinct terms that `rarest` chooses from.
MAX_READ_TERMS = 1_000

#: At most this many alternatives (near-spellings, members of classes) are added to the words.
MAX_ALTERNATIVES = 96

WORD, REPAIR, RELATED = 0, 1, 2
#: Weight of a class member in the first stage, relative to the word it stands for.
RELATED_WEIGHT = 0.4

# Words of a question's phrasing, not of its content: searched at a lower weight (general English, not from a corpus).
_WEAK_WORDS = """
type kind sort mention mentioned describe described discuss discussed say said tell told talk talked speak
share shared conversation conversations recent recently time times thing things plan planning planned
happen happened currently specific particular certain different various according call called name named
consider considered likely would could main primary reason way ways new try tried trying start started
begin decide decided want wanted people person participate participated engage engaged involve involved
attend attended express expressed receive received current
"""
#: Weight of such a word; other words have 1.
WEAK = 0.6


def phrasing_terms(analyser: Analyser) -> frozenset[str]:
    """The terms of words of a question's phrasing ("mentioned", "different"), not of its content; only for English."""
    return frozenset(map(analyser.stem, _WEAK_WORDS.split()) if analyser.language == "english" else ())


#: Weights of an everyday word ("like", "will") that is not written as a name, and of a single Han character beside
#: the pairs that contain it. In a question without other words they count in full.
EVERYDAY = 0.25
SINGLE = 0.3

# Kinds with their forms, specific before general: the first form that matches at the first question word of the text
# decides. A form begins with its question words, so that only those with the word found are compiled.
_ASKS = late(r"\b(?:what|which|when|where|who|whom|whose|why|how)\b", re.IGNORECASE)
_KINDS = (
    ("how_long", (r"how (?:long|old)\b", r"what (?:age|duration)\b", r"how many (?:years|months|weeks|days|hours)\b")),
    ("how_many", (r"how (?:many|much|often|frequently)\b", r"what (?:number|amount|percentage)\b")),
    ("when", (r"when\b", r"(?:what|which) (?:date|day|year|month|time|week|season)\b")),
    ("where", (
        r"where\b",
        r"(?:what|which) (?:\w+ )?(?:city|cities|country|countries|places?|states?|locations?|town|island|area)s?\b",
    )),
    ("why", (
        r"why\b", r"what (?:\w+ ){0,3}?reasons?\b",
        r"what (?:inspired|motivat\w+|made|caused|led|prompted|drives?)\b", r"how come\b",
    )),
    ("who", (
        r"(?:who|whom|whose)\b",
        r"(?:what|which) (?:person|people|friend|author|artist|band|singer|musician)s?\b",
    )),
    ("feeling", (
        r"how (?:did|does|do|has|was|is|were) .{0,200}\b(?:feel|felt|react|reaction|describe)",
        r"what (?:was|is|were) .{0,200}\b(?:reaction|feeling|emotion|mood|attitude)",
    )),
    ("opinion", (
        r"what (?:does|did|do|is|was) .{0,200}\b(?:think|thinks|believe|opinion|advice|suggest\w*|"
        r"recommend\w*|symboli[sz]e|represent|mean|remind)\b",
        r"how does .{0,200} view\b",
    )),
    ("title", (
        r"(?:what|which) (?:\w+ ){0,3}?(?:books?|songs?|movies?|films?|shows?|games?|album|"
        r"series|titles?|names?|novels?|brands?|quotes?|posters?)\b",
        r"what .{0,200}\b(?:called|named|titled)\b",
    )),
    ("how", (r"how\b",)),
    ("what", (r"(?:what|which)\b",)),
)  # fmt: skip
_WOULD = signed(r"^(?:would|could|might|is it likely)\b|\b(?:likely|potentially|might)\b")
_REQUEST = signed(
    r"^(?:(?:please|kindly|hey|hi|ok|so|and)\W+)*(?:tell|give|show|send|remind|find|get)\s+(?:me|us)\b"
)
"""A request in words that ask like a question: "tell me the deploy port"."""
_YES_NO = late(r"^(?:is|are|was|were|do|does|did|has|have|had|can|should|will)\b", re.IGNORECASE)
_PLURAL_WANTED = signed(
    r"\b(?:what|which) (?:\w+ ){0,2}?(?!was\b|is\b|does\b|has\b|this\b)\w{3,}s\b(?! name)|"
    r"\bwhat (?:all|else)\b|\bhow many\b|\ball (?:the )?\w+s\b|"
    r"\b(?:list|types|kinds) of\b|\bwhat has\b|\bwhere (?:has|have)\b|\bhow (?:has|have)\b|\bboth\b|\bin what ways\b"
)
# "before the move", "after her operation": an event used as a date.
_ANCHOR = signed(
    r"\b(?P<way>before|after|since|until|following|prior to)\s+"
    r"(?P<event>(?:the|a|an|my|our|his|her|their|its|\w+ing|\w+'s)\b(?:\s+[\w'-]+){0,5})"
)


class Anchor(Struct, frozen=True):
    """An event that a question uses as a date: the answer lies `before` it, or else after it.

    `terms` are the question's terms that name the event.
    """

    before: bool
    terms: tuple[str, ...]


class Query(FrozenRecord, frozen=True):
    """A question, analysed.

    `terms` are distinct: first the words of the question in order of appearance, then near-spellings, then members of
    the classes it names. For each term, `weights` has its weight in the first stage (0–1), `roles` its role (`WORD`,
    `REPAIR` or `RELATED`) and `concepts` the number of the word that it is or stands for. `authors` are the known
    authors that the question names (as given in `known_authors`); their names are not among the terms. `dates` are the
    days it names, `kind` is what it asks for ("when", "where", "why", … or "words" for bare keywords), `wants_list`
    whether it asks for several things. `anchor` is the event it uses as a date ("before the move"), `now` the reference
    of relative dates. `first_person`: the question is about the person who asks ("what did I …").
    """

    text: str
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    concepts: tuple[int, ...]
    roles: tuple[int, ...]
    authors: tuple[str, ...] = ()
    dates: tuple[DateMention, ...] = ()
    kind: str = "words"
    wants_list: bool = False
    anchor: Anchor | None = None
    now: datetime | None = None
    first_person: bool = False


def analyse_query(
    text: str,
    analyser: Analyser,
    *,
    now: datetime | None = None,
    known_authors: Collection[str] = (),
    term_counts: Callable[[list[str]], Mapping[str, int]] | None = None,
) -> Query:
    """Analyse a question.

    Args:
        text: the question, any language, any length.
        analyser: the analyser that the store was written with.
        now: reference for "last week" and the like; None leaves relative dates out.
        known_authors: texts before a colon in the store: names of speakers, and labels.
        term_counts: the number of chunks with each term, which distinguishes labels from speakers; None: all speak.

    Never raises for unusual text; a question without any searchable word has no terms.
    """
    question = text[:MAX_CHARACTERS]
    named = _named_authors(question, known_authors)
    if named and term_counts is not None:
        named = _actual_speakers(named, analyser, term_counts)
    name_offsets = set().union(*named.values())
    dates = tuple(find_dates(question, now))
    weights = _word_weights(question, name_offsets, analyser)
    if not weights and name_offsets:  # only names: then the names are searched for as words
        for term in analyser.terms(question):
            weights[term] = 1.0
    most = max(weights.values(), default=1.0)
    weights = {term: weight / most for term, weight in weights.items()}
    kept = list(weights)[:MAX_READ_TERMS]
    return Query(
        text=question,
        terms=tuple(kept),
        weights=tuple(weights[term] for term in kept),
        concepts=tuple(range(len(kept))),
        roles=(WORD,) * len(kept),
        authors=tuple(named),
        dates=dates,
        kind=question_kind(question),
        wants_list=wants_list(question),
        anchor=_anchor(question, analyser, kept, dates),
        now=now,
        first_person=says_i(question),
    )


def _word_weights(question: str, left_out: Collection[int], analyser: Analyser) -> dict[str, float]:
    """Return the terms of a question, in order, with the weight of each; ``left_out`` are offsets of names."""
    located = [one for one in analyser.located_terms(question, indexed=True) if one[1] not in left_out]
    weak = phrasing_terms(analyser)
    terms_at = Counter(start for _, start, _ in located)
    whole_at = {start: term for term, start, _ in reversed(located)}
    language = language_of(question)
    phrasing = frozenset() if language == "english" else stop_words(language) | ASKING
    default = DEFAULT_ASKED.search(question)
    reach = default.span() if default else (0, 0)
    weights: dict[str, float] = {}
    word, at, is_everyday = "", -1, False
    for term, start, end in located:
        if start != at:  # a word without spaces may have thousands of terms
            word, at = question[start:end], start
            is_everyday = (
                (fold(word) in analyser.stop and not (start and word[0].isupper()))
                or word.lower() in phrasing
                or reach[0] <= start < reach[1]
            )
        weight = WEAK if term in weak else 1.0
        if end - start > 1 == len(term) and is_han(term):
            weight = SINGLE
        elif is_everyday:
            weight = EVERYDAY
        elif word.isascii():
            # Beside "SQLite", its parts together count as one word.
            weight /= 1 if term == whole_at[start] else terms_at[start] - 1
        weights[term] = max(weights.get(term, 0.0), weight)
    if default:
        weights[analyser.stem("default")] = 1.0
    return weights


def wants_list(question: str) -> bool:
    """Return whether an English question asks for several things or their number."""
    return _PLURAL_WANTED.search(question) is not None


def question_kind(text: str) -> str:
    """Return what a question or request asks for: "when", "where", "why", "who", …; "words" for bare keywords."""
    stripped = text.strip()
    if _WOULD.search(stripped):
        return "would"
    if _YES_NO.match(stripped):
        return "yes_no"
    asks = _ASKS.search(stripped)
    if asks:
        word = asks[0].casefold()
        for kind, forms in _KINDS:
            for form in forms:
                if word in form.partition(" ")[0] and _compiled(form).match(stripped, asks.start()):
                    return kind
    return "what" if _REQUEST.search(stripped) else "words"


@cache
def _compiled(form: str) -> re.Pattern[str]:
    """Compile a form when it is first needed: few questions try all kinds."""
    return re.compile(form, re.IGNORECASE)


def with_alternatives(query: Query, alternatives: Iterable[tuple[str, str, float, int]]) -> Query:
    """Add alternatives, each (word, alternative, weight, role), to the concepts of those words that are terms."""
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
    return structs.replace(
        query, terms=tuple(terms), weights=tuple(weights), concepts=tuple(concepts), roles=tuple(roles)
    )


def rarest(query: Query, term_counts: Callable[[list[str]], Mapping[str, int]]) -> Query:
    """Return `query` with at most `MAX_TERMS` terms: of a longer one, those found in the fewest chunks of the store.

    Terms that are not in the store fill the remaining places, since they may be misspelt. `term_counts` returns the
    number of chunks for each given term that is in the store.
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
        anchor = structs.replace(anchor, terms=named) if named else None
    return structs.replace(
        query,
        terms=terms,
        weights=tuple(query.weights[i] for i in kept),
        concepts=tuple(range(len(kept))),
        roles=(WORD,) * len(kept),
        anchor=anchor,
    )


def with_months(query: Query, analyser: Analyser) -> Query:
    """Return `query` with the other names of the months in its dates: "11 April" is found by "11 Apr", too."""
    in_dates = (fold(query.text[one.start : one.end]).replace(".", " ").split() for one in query.dates)
    names = other_names_of_month(chain.from_iterable(in_dates))
    others = ((analyser.stem(one), analyser.stem(other)) for one, found in names.items() for other in found)
    return with_alternatives(query, ((one, other, 1.0, WORD) for one, other in others))


def with_related(query: Query, analyser: Analyser) -> Query:
    """Add the members of the everyday classes that the question names ("instrument" → "violin", …)."""

    found = [
        (term, member, RELATED_WEIGHT, RELATED)
        for term, weight in zip(query.terms, query.weights, strict=True)
        if weight > WEAK
        for member in related_terms(term, analyser)
    ]
    return with_alternatives(query, found)


def with_labels(
    query: Query, source: CandidateSource | JoinedSource, authors: Collection[str], analyser: Analyser
) -> Query:
    """Add labels, the texts before a colon, with a word of the question: the index keeps them apart from other words.

    A label is no better evidence than its word, so it has the inverse document frequency of both together: the line
    "BUFFER_SIZE: …" of one document must not make "size" a rare word.

    Args:
        authors: the labels and names of speakers in `source`.
    """
    labels = _authors_by_term(frozenset(authors), analyser.language)
    labelled = {
        term: labels[term]
        for term, weight in zip(query.terms, query.weights, strict=True)
        if weight > EVERYDAY and term in labels
    }
    if not labelled:
        return query
    chunks = sum(one.statistics(one.term_ids(())).chunks for one in sources_of(source))
    # All terms in one look-up: those that are not known yet would need another one later.
    counts = source.term_counts(
        [*query.terms, *(AUTHOR_PREFIX + name for names in labelled.values() for name in names)]
    )
    found: list[tuple[str, str, float, int]] = []
    for term, names in labelled.items():
        own = [counts.get(AUTHOR_PREFIX + name, 0) for name in names]
        together = _rarity(min(counts.get(term, 0) + sum(own), chunks), chunks)
        found.extend(
            (term, AUTHOR_PREFIX + name, together / _rarity(count, chunks) / len(name.split()), WORD)
            for name, count in zip(names, own, strict=True)
        )
    return with_alternatives(query, found)


def _rarity(count: int, chunks: int) -> float:
    """Return the inverse document frequency of a term in `count` of `chunks` chunks."""
    return log1p((chunks - count + 0.5) / (count + 0.5))


@lru_cache(maxsize=16)
def _authors_by_term(authors: frozenset[str], language: str) -> dict[str, list[str]]:
    """Return authors by each term of their name."""
    by_term: dict[str, list[str]] = {}
    for author in sorted(authors):
        for term in _terms_of_name(author, language):
            by_term.setdefault(term, []).append(author)
    return by_term


@lru_cache(maxsize=20_000)
def _terms_of_name(name: str, language: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(get_analyser(language).terms(name)))


def _actual_speakers(
    named: Mapping[str, set[int]], analyser: Analyser, term_counts: Callable[[list[str]], Mapping[str, int]]
) -> dict[str, set[int]]:
    """Return the named authors except those mentioned in more chunks than they speak in.

    A text before a colon is taken for a speaker, but the subject in "Osprey: …" is none if other chunks are about it.
    """
    terms = {name: analyser.terms(name) for name in named}
    counts = term_counts([*map(AUTHOR_PREFIX.__add__, terms), *chain(*terms.values())])
    mentions = {name: max((counts.get(term, 0) for term in own), default=0) for name, own in terms.items()}
    return {name: at for name, at in named.items() if counts.get(AUTHOR_PREFIX + name, 0) >= mentions[name]}


def names_only(query: Query, analyser: Analyser) -> Query:
    """Return `query` reduced to the people and agents that it names, as words and as speakers."""
    name_terms = dict.fromkeys(term for name in query.authors for term in analyser.indexed_terms(name))
    terms = (*name_terms, *(AUTHOR_PREFIX + name for name in query.authors))
    return structs.replace(
        query,
        terms=terms,
        weights=(1.0,) * len(terms),
        concepts=tuple(range(len(terms))),
        roles=(WORD,) * len(terms),
        anchor=None,
    )


@lru_cache(maxsize=16)
def _authors_by_part(authors: frozenset[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return authors by each part of their name, and the parts in order.

    Cached, since a large store has thousands of authors and they seldom change.
    """
    by_part: dict[str, list[str]] = {}
    for author in sorted(authors):
        for part in fold(author).split():
            if len(part) > 1:
                by_part.setdefault(part, []).append(author)
    return by_part, sorted(by_part)


def _anchor(
    question: str, analyser: Analyser, terms: Collection[str], dates: Iterable[DateMention]
) -> Anchor | None:
    """Return the event that is used as a date, unless a date itself follows ("after 3 May")."""
    match = _ANCHOR.search(question)
    if match is None or any(match.start() <= mention.start < match.end() for mention in dates):
        return None
    named = tuple(dict.fromkeys(t for t in analyser.terms(match["event"]) if t in terms))
    before = match["way"].lower() in ("before", "until", "prior to")
    # If the event has all the terms, the question is about the event.
    return Anchor(before, named) if named and len(named) < len(terms) else None


def _named_authors(question: str, known_authors: Collection[str]) -> dict[str, set[int]]:
    """Return known authors named in the question, each with the offsets of words that only name them.

    A full name, its first or last part, or a nickname of three or more letters that begins it ("Mel" for "Melanie")
    counts; the words must be capitalised unless they are the whole name.
    """
    by_part, parts = _authors_by_part(frozenset(known_authors))
    named: dict[str, set[int]] = {}
    if not by_part:
        return named
    spelled = [(word, start, fold(word).removesuffix("'s").rstrip("'")) for word, start, _ in words(question)]
    folded = [plain for _, _, plain in spelled]
    for place, (word, start, plain) in enumerate(spelled):
        found = by_part.get(plain)
        if found is not None and not word[:1].isupper():
            # In lower case only a whole name counts: not "local" for the label "Local TLS:" of a note.
            found = [one for one in found if folded[place : place + len(own := fold(one).split())] == own]
        if found is None and len(plain) >= 3 and word[:1].isupper() and start > 0:
            begun = parts[bisect_left(parts, plain) : bisect_left(parts, f"{plain}\U0010ffff")]
            found = [author for part in begun for author in by_part[part]]
            found = found if len(set(found)) == 1 else None
        for author in found or ():
            # In lower case it also counts as a word, since it may be the label of a note.
            named.setdefault(author, set()).update([start] if word[:1].isupper() else ())
    return named


#: Fewest letters of a word that is repaired, and most repairs for one word.
MIN_REPAIRED_LENGTH, MAX_REPAIRS = 4, 3
#: Weight of a repair relative to the word that was meant.
REPAIR_WEIGHT = 0.8
#: Most unknown words of one question that are repaired; a question of unknown words only is in another language.
_MAX_REPAIRED = 6


def with_repairs(
    query: Query, analyser: Analyser, term_counts: Callable[[list[str]], Mapping[str, int]]
) -> Query:
    """Return `query` with near-spellings beside each word that is not in the store.

    `term_counts` returns the number of chunks for each given term that is in the store.
    """
    asked = [term for term, role in zip(query.terms, query.roles, strict=True) if role == WORD]
    if not asked:
        return query
    known = term_counts(asked)
    distinctive = {term for term, weight in zip(query.terms, query.weights, strict=True) if weight > EVERYDAY}
    unknown = [t for t in asked if not known.get(t) and t in distinctive and _repairable(t)][:_MAX_REPAIRED]
    if not unknown:
        return query
    spelled = _spellings(query.text, analyser, unknown)
    candidates = {term: _candidates(term, spelled.get(term, ()), analyser) for term in unknown}
    counts = term_counts(sorted({c for options in candidates.values() for c in options}))
    found: list[tuple[str, str, float, int]] = []
    for term, options in candidates.items():
        known_options = [option for option in options if counts.get(option)]
        # Lowest rank first (see _candidates), then the most frequent, then by spelling, for a stable order.
        known_options.sort(key=lambda option: (options[option], -counts[option], option))
        found.extend((term, option, REPAIR_WEIGHT, REPAIR) for option in known_options[:MAX_REPAIRS])
    return with_alternatives(query, found)


def one_edit(word: str) -> set[str]:
    """Return every text one deletion, swap of neighbours, replacement or insertion of a letter away from `word`."""
    letters = sorted({*ascii_lowercase, *word}) if word.isascii() else sorted(set(word))
    splits = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    found = {left + right[1:] for left, right in splits if right}
    found.update(left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1)
    found.update(left + letter + right[1:] for left, right in splits if right for letter in letters)
    found.update(left + letter + right for left, right in splits for letter in letters)
    found.discard(word)
    return found


def _repairable(term: str) -> bool:
    return MIN_REPAIRED_LENGTH <= len(term) <= 24 and term.isalpha()


def _spellings(text: str, analyser: Analyser, wanted: Iterable[str]) -> dict[str, list[str]]:
    """Return, for each wanted term, the words of the question (folded, not stemmed) that it comes from."""
    missing = set(wanted)
    spelled: dict[str, list[str]] = {}
    for word, _, _ in words(text):
        plain = fold(word)
        term = analyser.stem(plain)
        if term in missing and plain not in spelled.setdefault(term, []):
            spelled[term].append(plain)
    return spelled


def _candidates(term: str, spelled: Iterable[str], analyser: Analyser) -> dict[str, int]:
    """Return terms that may have been meant, each with a rank: 0 for a swap or deletion in the whole word, else 1."""
    found = {option: 1 for option in one_edit(term) if len(option) >= 3}
    for word in spelled:
        # A typo in an ending hides it from the stemmer, so the cheap edits are also tried before stemming.
        for i in range(len(word)):
            shorter = word[:i] + word[i + 1 :]
            swapped = word[:i] + word[i + 1 : i + 2] + word[i] + word[i + 2 :]
            for option in (shorter, swapped):
                if option != word and len(option) >= 3:
                    found[analyser.stem(option)] = 0
    found.pop(term, None)
    return found

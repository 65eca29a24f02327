"""Read answers from plain notes: the sentence that answers, if any does.

Conversations are read with fitted tables (`reader`), which do not suit notes in the third person. Here a few rules
apply, and the answer is the whole sentence unless a part of it clearly fits the question.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from functools import cache

from msgspec.structs import replace

from rlm_mem.offline.documents import same_name
from rlm_mem.offline.extraction import Piece, counted_thing, piece, reason_after, trimmed
from rlm_mem.offline.features import lags_behind
from rlm_mem.offline.figures import is_about_other_figure
from rlm_mem.offline.kinds import has_form
from rlm_mem.offline.passages import Passage, Reading, Sentence, Word, heading_stems
from rlm_mem.offline.phrases import FORBIDDEN, FULL_NAME, FUNCTION_WORDS, PATH, ROLE
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import WHEN, WHERE, WHO, WHY, YES_NO
from rlm_mem.offline.whole_values import whole_value
from rlm_mem.offline.word_classes import NUMBER, RELATIONS, Relation, degree, stem_of
from rlm_mem.record import FrozenRecord
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.by_language import ENGLISH_NEGATION
from rlm_mem.text.patterns import late, word_set

_LABELS = word_set(
    """
    note notes decision decided todo fact facts preference preferences reminder update summary context rule warning
    idea question answer result status why reason what how when where who fix bug cause action owner
    """
)
"""Words before a colon that are a heading although they look like a speaker."""

_MIN_SHARE = 0.68
"""Least share of the question that a sentence must match to answer it."""

_MIN_SHARE_WHOLE = 0.8
"""The same for a sentence that is quoted whole, since no part of it clearly fits the question."""

_MIN_OWN_SHARE = 0.55
"""Least share that a sentence quoted whole must match by itself, without its heading and surroundings."""

_MAX_WITH_MISSING = 0.6
"""Highest confidence in an answer whose sentence lacks distinctive words of the question that its note contains.

More counts as sure. Of 57 answers from five sets of notes, 3 of the 6 wrong and 4 of the 51 right ones lacked such
words.
"""
_ONE_OF_SEVERAL = 0.1
"""Subtracted from the confidence if the sentence has several values of the kind asked for: five in six are
right."""
_MIN_FIT = 0.5
EXACT_FIT = 0.9
_FITTING = 0.3
"""Added to the matched share of a sentence with a part of exactly the kind asked for, to find the nearest one."""
_WHAT_IS = late(
    r"\W*what(?:['’]s|\s+(?:is|are|was|were))\s+(?:(?:the|a|an|our|my|your|their|his|her)\s+)?"
    r"(?P<thing>[\w'’.-]+(?:\s+(?!(?:of|in|for|on|at|to|from|that|which|used|called|by|with|when|if)\b)[\w'’.-]+){0,4})",
    re.IGNORECASE,
)
_GIVES_VALUE = late(
    r"[:=—–]|\s-{1,2}\s|\b(?:is|are|was|were|be)\b(?!\s\w{2,20}ed\s(?:every|each|by|when|after|before|because|once|twice)\b)"
    r"|\b(?:means?|meant|defaults?|equals?|becomes?|stands for|called|named)\b|\d",
    re.IGNORECASE,
)
ITEM = late(r"[-*+•|#]|\d{1,3}[.)]\s")
_OF_HEADING = 0.1
"""Taken from the score of a heading: of two that match as much, a sentence states more."""
_MAX_LISTED = 3
_MAX_SENTENCE = 500  # characters read of one sentence, which bounds the work on unusual texts
_THIRD_PERSON = word_set("he she they it his her hers their theirs its him them this that these")
# Words that frame a question and need not be in the answer.
_FRAME_WORDS = word_set(
    """
    name call title kind type sort thing way time day date year month week number use like love prefer favourite
    favorite enjoy hate dislike take get do have go make need want much many long often far old people person
    someone something anyone now currently usually exactly tell know say decide decision reason place right
    """
)
_EVERYDAY = word_set("need needs want wants use uses used bring brings own owns know knows")
_NO_MODIFIERS = word_set(
    """
    many much kind type sort number default same whole entire first last next new old only other current own main
    """
)
_CONVERSATIONAL = late(r"\b(?:i|me|my|we|us|our|you|your)\b|['’]m\b|[?!]", re.IGNORECASE)
"""Words that are common in speech and rare after a heading ("Architecture: …")."""

_REJECTED = late(
    r"\b(?:prefers?|preferred|chose|choose|picked|rather)\b.{0,150}?\b(?:to|over|than|instead of)\s+(.+)",
    re.IGNORECASE,
)


class _Line(FrozenRecord, frozen=True):
    passage: Passage
    number: int
    sentence: Sentence
    stems: frozenset[str]  # with the subjects of its pronouns
    around: frozenset[str]  # stems of its context


class _Found(FrozenRecord, frozen=True):
    line: _Line
    matched: float
    score: float
    piece: Piece


def is_notes(passages: Sequence[Passage]) -> bool:
    """Whether most of these passages are notes rather than parts of a conversation."""
    speakers = {one.author for one in passages if one.author and not _is_label(one.author)}
    talking = {
        a for a in speakers if any(_CONVERSATIONAL.search(one.text) for one in passages if one.author == a)
    }
    return bool(passages) and 2 * sum(1 for one in passages if one.author in talking) < len(passages)


def _is_label(author: str) -> bool:
    """Whether the text before a colon is a heading ("Decision", "Next book") and not a name."""
    words = author.split()
    return words[0].lower() in _LABELS or any(word[0].islower() for word in words[1:])


def read_notes(question: Question, passages: Sequence[Passage]) -> Reading:
    """Answer ``question`` from notes. Deterministic; the rules for confidences were measured on small stores."""
    wanted = wanted_words(question)
    lines = [line for passage in passages for line in _lines(passage)]
    everything = frozenset[str]().union(*(line.stems for line in lines))
    if not wanted or not lines or not all(same_name(name, everything) for name in _name_stems(question)):
        return Reading(None, (), 0.05, 0.0)
    found, best_match = _answering(question, passages, lines, wanted, everything)
    if not found:
        return Reading(None, (), round(min(0.45, 0.5 * best_match), 3), 0.0)
    best = found[0]
    missing = _missing_words(question, wanted, best)
    text, missing = _answer_text(question, best, missing)
    used = [best.line.passage]
    if question.many and not question.kind.is_open:
        for other in found[1:]:
            if len(used) < _MAX_LISTED and other.line.passage not in used and other.score >= best.score - 0.1:
                text = f"{text.rstrip('.')}; {other.piece.text}"
                used.append(other.line.passage)
    certain = (best.matched - _MIN_SHARE) / (1 - _MIN_SHARE)
    runner_up = any(
        o.line.passage is not best.line.passage and o.score > best.score - 0.05 for o in found[1:]
    )
    answerable = 0.72 + 0.22 * certain
    if best.piece.fit >= _MIN_FIT:
        confidence = (0.6 + 0.3 * certain) * (0.8 + 0.2 * best.piece.fit)
    else:
        confidence = 0.47 + 0.25 * certain
    confidence -= 0.12 * (runner_up and not question.many)
    confidence -= _ONE_OF_SEVERAL * (not best.piece.alone)
    if missing:
        confidence = min(confidence, _MAX_WITH_MISSING)
    exact = best.piece.fit >= EXACT_FIT
    return Reading(text, tuple(used), round(answerable, 3), round(min(answerable, confidence), 3), exact)


def _answering(
    question: Question,
    passages: Sequence[Passage],
    lines: Iterable[_Line],
    wanted: dict[str, float],
    everything: frozenset[str],
) -> tuple[list[_Found], float]:
    """The sentences that may answer a question, best first, and the highest share of its words in any sentence.

    Args:
        everything: the stems of all sentences.
    """
    newest = max((p.at.timestamp() for p in passages if p.at), default=0.0)
    lags = {id(p): lag for p, lag in zip(passages, lags_behind([p.score for p in passages]), strict=True)}
    found = []
    best_match = 0.0
    counted = counted_thing(question)
    for line in lines:
        matched = _matched_share(question, wanted, line)
        best_match = max(best_match, matched)
        if matched < _MIN_SHARE:
            continue
        if line.passage.of_document and (
            _CALL.match(line.sentence.text) or (counted and not _counts(counted, wanted, line))
        ):
            continue
        answer_part = _answer(question, line, wanted)
        if answer_part is not None and line.passage.of_document:
            answer_part = _document_answer(question, answer_part, line, wanted)
        if answer_part is None or not has_form(question, answer_part.text):
            continue
        if answer_part.fit < _MIN_FIT and (
            line.passage.of_document or not _is_quotable(question, wanted, line, matched, everything)
        ):
            continue  # closest passages of a document are more useful than one sentence
        lag = min(1.0, lags[id(line.passage)] / 4)
        recent = 0.02 * (line.passage.at is not None and line.passage.at.timestamp() >= newest)
        score = matched + 0.3 * answer_part.fit - 0.1 * lag + recent - 0.6 * (not line.passage.current)
        score -= _OF_HEADING * line.sentence.text.startswith("#")
        found.append(_Found(line, matched, score, answer_part))
    return sorted(found, key=lambda one: -one.score), best_match


def _answer_text(question: Question, best: _Found, missing: list[str]) -> tuple[str, list[str]]:
    """The text of an answer, extended within its note where it lacks words of the question, and the missing words."""
    text = best.piece.text
    if best.piece.fit >= _MIN_FIT:
        if question.kind not in (YES_NO, WHY):
            text = whole_value(question, best.line.sentence.text, text)
        return text, missing
    focus = [stem_of(question.focus.split()[-1])] if question.focus else []
    missing += [term for term in focus if not degree(term, _with_compounds(best.line.sentence), "")]
    extended = _with_following(best.line, text, missing)
    if extended != text:
        return extended, missing
    return text, [term for term in missing if term not in focus]


def _missing_words(question: Question, wanted: dict[str, float], best: _Found) -> list[str]:
    """The distinctive words of a question, without names, that the sentence of the best answer lacks."""
    if best.line.passage.of_document:
        return []
    stems = _with_compounds(best.line.sentence)
    names = _name_stems(question) if question.kind is YES_NO else []
    text = best.line.sentence.text
    return [
        term
        for term, weight in wanted.items()
        if weight >= 1 and term not in names and not degree(term, stems, text)
    ]


def _with_following(line: _Line, answer: str, unsaid: list[str]) -> str:
    """A quoted sentence with those after it in its note, up to the last with missing words of the question.

    "Heat pump showed alarm 51. Hasse: low pressure, topped up" answers what Hasse did about alarm 51.
    """
    following = line.passage.sentences[line.number + 1 :]
    last = max((n for n, one in enumerate(following) if one.stems.intersection(unsaid)), default=-1)
    if last < 0 or answer != trimmed(line.sentence.text):
        return answer
    both = line.passage.text[line.sentence.start : following[last].start + len(following[last].text)]
    return trimmed(" ".join(both.split()))


_CALL = late(r"\W{0,3}+(?:[\w.]{1,60}\s?=\s?[\w.]{1,60}\(|[\w.]{1,60}\([\"'])")
"""A line of code in a manual: what an example stores or prints is not stated."""


_MODIFIERS = 2
"""Most words between a figure and the thing counted: "four frequency tiers"."""


def _counts(counted: str, wanted: dict[str, float], line: _Line) -> bool:
    """Whether a sentence of a manual, which has many figures, may tell how many there are of the thing counted.

    It names the thing; if the question has no other word, right after a figure.
    """
    if len(wanted) > 1:
        return bool(degree(counted, line.sentence.stems, ""))
    words = line.sentence.words
    return any(
        NUMBER.fullmatch(word.text) and any(one.stem == counted for one in words[n + 1 : n + 2 + _MODIFIERS])
        for n, word in enumerate(words)
    )


_MEASURED_THING = late(
    r"\W*how \w{1,20} (?:is|are|was|were) (?:(?:the|an?|my|our|your) )?(?P<thing>[\w-]{1,40})", re.IGNORECASE
)
"""What a measure is asked of: "warranty" in "How long is the warranty on the pump?"."""
_MIN_ASKED = 3
"""Fewest distinctive words of a question that a manual answers with yes or no; fewer are in many sentences."""


def _document_answer(question: Question, part: Piece, line: _Line, wanted: dict[str, float]) -> Piece | None:
    """The answer from a document, mostly its whole sentence; None if it is unlikely to answer the question.

    No sentence answers how to do something.
    """
    text = trimmed(line.sentence.text)
    if _WAY_ASKED.match(question.text):
        return None
    if question.kind is YES_NO:
        names = _name_stems(question)
        heavy = [term for term, weight in wanted.items() if weight >= 1 and term not in names]
        return part if len(heavy) >= _MIN_ASKED else None
    if question.kind is WHERE and not _is_place(part.text):
        return None
    if question.kind is WHO and not (FULL_NAME.search(part.text) or ROLE.search(part.text)):
        return None  # in a manual, other words with a capital are seldom persons
    measured, named = _MEASURED_THING.match(question.text), line.stems | heading_stems(line.passage.heading)
    if measured and not degree(stem_of(measured["thing"]), named, ""):
        return None
    if question.kind.is_measured and part.fit >= _MIN_FIT:
        return None if part.text.lower().split()[0] in ("one", "a", "an") else replace(part, text=text)
    return replace(part, text=text) if part.text in text else part


_CERTAIN_PLACE = late(
    r"(?:behind|beneath|underneath|beside|near|inside|outside|opposite|next to|in front of|on top of)\b",
    re.IGNORECASE,
)


def _is_place(text: str) -> bool:
    """Whether a part of a manual is a place; words such as "on" and "in" introduce many other things there."""
    return bool(PATH.search(text) or _CERTAIN_PLACE.match(text))


def matched_share(question: Question, passage: Passage) -> float:
    """The share of a question that the best sentence of a passage matches, 0 to 1."""
    wanted = wanted_words(question)
    return (
        max((_matched_share(question, wanted, line) for line in _lines(passage)), default=0.0)
        if wanted
        else 0.0
    )


class NearestLine(FrozenRecord, frozen=True):
    """The sentence of a passage that is nearest to a question.

    ``share``: the share of the question that it matches; ``fit``: that of its part of the kind asked for, below 0 if
    it has none; ``alone``: that part is the only one of its kind.
    """

    sentence: Sentence
    number: int
    share: float
    fit: float
    alone: bool


def nearest_line(question: Question, passage: Passage) -> NearestLine | None:
    """The sentence that matches most of a question, preferably with a part of the kind asked for."""
    wanted = wanted_words(question)
    found = []
    for line in _lines(passage):
        part = _answer(question, line, wanted)
        fits = part is not None and has_form(question, part.text)
        fit, alone = (part.fit, part.alone) if part is not None and fits else (-1.0, False)
        share = _matched_share(question, wanted, line)
        found.append(NearestLine(line.sentence, line.number, share, fit, alone and fit >= EXACT_FIT))
    return max(found, key=lambda one: one.share + _FITTING * (one.fit >= EXACT_FIT), default=None)


@cache
def _frame() -> frozenset[str]:
    return frozenset(map(stem_of, _FRAME_WORDS))


def _name_stems(question: Question) -> list[str]:
    return [stem_of(name) for name in question.names]


def wanted_words(question: Question) -> dict[str, float]:
    """Weights of the question's words by stem: largest for names, small for words of its phrasing."""
    frame = set(_frame())
    found = dict.fromkeys(_name_stems(question), 1.2)
    parts = {part for name in question.names for part in get_analyser("english").terms(name)}
    relation_stems = {stem_of(word) for relation in _relations(question) for word in relation.words}
    plain = [t for t in question.terms if t not in found and t not in parts and t not in relation_stems]
    if question.kind is WHERE:
        frame |= {stem_of(word) for word in question.focus.split()}  # "in which city": any place matches
    if question.kind is WHY:
        frame |= {stem_of(word) for word in ("happen", "occur", "cause", "come")}
    bare = not any(term not in frame for term in plain) and not relation_stems
    for term in plain:
        if term not in {stem_of(option) for option in question.options}:
            found[term] = 1.0 if term not in frame else 0.8 if bare else 0.25
    for stem in _everyday_verbs(question):
        found.setdefault(stem, 0.35)
    return found


def _everyday_verbs(question: Question) -> list[str]:
    """Verbs too common to search for that still distinguish sentences ("need", "want", "use")."""
    relation_words = {word for relation in _relations(question) for word in relation.words}
    low = [word.low for word in Sentence(question.text, 0).words]
    return [stem_of(word) for word in low if word in _EVERYDAY and word not in relation_words]


def _relations(question: Question) -> list[Relation]:
    """The everyday relation that the question asks for, if any."""
    return [relation for relation in RELATIONS if relation.asked_by.search(question.text)][:1]


def _lines(passage: Passage) -> list[_Line]:
    """The sentences of a note except questions; one with a pronoun or without a name gets the names before it."""
    found = []
    names: frozenset[str] = frozenset()
    continued: frozenset[str] = frozenset()  # stems of the sentence before, if it has a pronoun itself
    heading = heading_stems(passage.heading)
    author = Sentence(passage.author, 0).stems
    for number, whole in enumerate(passage.sentences):
        sentence, earlier = whole, names
        names |= _capitals_of(whole)
        if sentence.asks:
            continue
        if len(sentence.text) > _MAX_SENTENCE:
            sentence = replace(sentence, text=sentence.text[:_MAX_SENTENCE])
        pronoun = any(word.low in _THIRD_PERSON for word in sentence.words)
        # The item of a list says something of its own; what it is about is above it.
        nameless = not ITEM.match(sentence.text) and not any(
            w.text[:1].isupper() and n for n, w in enumerate(sentence.words)
        )
        antecedents = (earlier | continued) if pronoun else earlier if nameless else frozenset()
        stems = _with_compounds(sentence) | antecedents | author
        # The context of a sentence: its whole note, or in a document the adjacent sentences and the heading; the
        # adjacent rows of a table are about other things.
        near = 0 if sentence.text.startswith("|") else 1
        beside = passage.sentences[max(0, number - near) : number + near + 1]
        context = frozenset().union(*(one.stems for one in beside)) if passage.of_document else passage.stems
        found.append(_Line(passage, number, sentence, stems, context | heading | passage.document_stems))
        continued = sentence.stems if pronoun else frozenset()
    return found


def _capitals_of(sentence: Sentence) -> frozenset[str]:
    return frozenset(
        word.stem for word in sentence.words if word.text[:1].isupper() or word.text[:1].isdigit()
    )


def _with_compounds(sentence: Sentence) -> frozenset[str]:
    """Stems of a sentence, with compounds as one word and as two ("roll back" and "rollback")."""
    words = sentence.words
    pairs = {stem_of(a.low + b.low) for a, b in itertools.pairwise(words) if not a.closes}
    verbs = {
        stem_of(word.low[:-1]) for word in words if word.low.endswith("ves")
    }  # "lives" is no plural here
    return sentence.stems | pairs | verbs


def _matched_share(question: Question, wanted: dict[str, float], line: _Line) -> float:
    """The share of the question that a sentence matches, 0 to 1; 0 if it is about another subject."""
    names = set(_name_stems(question))
    if (
        _about_possession(question, line)
        or _about_other_owner(question, line)
        or _about_variant(question, line)
        or _about_other_compound(question, line)
        or is_about_other_figure(question, line.passage, line.sentence)
    ):
        return 0.0
    matched = total = 0.0
    topic, compounds = _topic(question), _compounds(question)
    # "Package manager": if a member of its class matches the head, the words before it need no match.
    head = question.focus.split()[-1:]
    member = any(
        stem_of(one) not in line.stems and degree(stem_of(one), line.stems, "") >= 0.9 for one in head
    )
    modifiers = {stem_of(word) for word in question.focus.split()[:-1]} if member else set()
    for term, weight in wanted.items():
        match = degree(term, line.stems, line.sentence.text)
        if not match and compounds.get(term, set()) & line.stems:
            match = 1.0
        if not match and term in modifiers:
            match = 0.7
        if term in names:
            match = 1.0 if same_name(term, line.stems) else 0.55 if same_name(term, line.around) else 0.0
            if not match:
                return 0.0
        elif not match and term in line.around:
            match = 0.3 if term in topic else 0.55
        if term in topic and not match:
            weight *= 2.2  # the subject of the question is missing
        matched += weight * match
        total += weight
    for relation in _relations(question):
        weight = 0.5 if any(term not in names for term in wanted) else 1.0
        matched += weight * bool(relation.stated_by.search(line.sentence.text))
        total += weight
    return matched / total if total else 0.0


def _compounds(question: Question) -> dict[str, set[str]]:
    """For each word of the question, its compounds with its neighbours: "roll back" gives "rollback"."""
    raw = [word.low for word in Sentence(question.text, 0).words]
    found: dict[str, set[str]] = {}
    for left, right in itertools.pairwise(raw):
        for word in (left, right):
            found.setdefault(stem_of(word), set()).add(stem_of(left + right))
    return found


_DONE = late(r"\b(?:did|does|do|is|are|was|were|has|have|had)\s(?P<rest>[^?]*)", re.IGNORECASE)


def _topic(question: Question) -> frozenset[str]:
    """The stems that an answer must be about.

    "database" in "which database do we", "return" in "what did Dana return", "cat" in "the name of Dana's cat".
    """
    nouns = []
    if question.focus:
        nouns.append(question.focus.split()[-1])
    for match in re.finditer(
        r"['’]s?\s+((?:[\w-]+\s+){0,2}?[\w-]+)\s*(?:$|\?|\b(?:is|are|was|were)\b)", question.text
    ):
        nouns.append(match[1].split()[-1])
    who_noun = re.match(
        r"\W*who(?:se)?\s+(?:is\s+|was\s+|are\s+)?(?:the\s+|our\s+)?([\w-]+)", question.text, re.IGNORECASE
    )
    if who_noun:
        nouns.append(who_noun[1])
    auxiliary = _DONE.search(question.text)
    verbs = get_analyser("english").terms(auxiliary["rest"]) if auxiliary else []
    verbs = [verb for verb in verbs if verb not in {stem_of(name) for name in question.names}]
    nouns += verbs if len(verbs) == 1 else []  # a single word is the verb
    stems = {stem_of(noun) for noun in nouns}
    if question.kind is WHERE:
        stems -= {stem_of(word) for word in question.focus.split()}
    return frozenset(stem for stem in stems if stem in question.terms and stem not in _frame())


_POSSESSED = late(
    r"\b(?P<owner>[^\W\d_][\w-]{0,60}?)(?:['’]s|(?<=s)['’])\s+(?P<noun>[\w-]+)(?:\s+(?P<next>[\w-]+))?"
)


def _about_possession(question: Question, line: _Line) -> bool:
    """Whether a sentence is about a possession of the person named ("Marco's sister lives …") not in question."""
    for stem in (*_name_stems(question), *question.terms):
        places = [w for w in line.sentence.words if w.stem == stem]
        owned = [m for m in _POSSESSED.finditer(line.sentence.text) if stem_of(m["owner"]) == stem]
        if not places or len(owned) < len(places):
            continue
        nearby = frozenset(stem_of(m["noun"]) for m in owned)
        # "Marco's reading lamp", but not "Marco's sister lives" if the question is where Marco lives.
        nearby |= {stem_of(m["next"]) for m in owned if m["next"] and not _is_asked_verb(question, m["next"])}
        following = " ".join(line.sentence.text[m.start("noun") : m.end()] for m in owned)
        if any(relation.stated_by.search(following) for relation in _relations(question)):
            continue
        if not any(degree(term, nearby, "") for term in question.terms if term != stem):
            return True
    return False


def _is_asked_verb(question: Question, word: str) -> bool:
    """Whether a word is the third person of the verb of a question ("does … live")."""
    lows = [one.low for one in Sentence(question.text, 0).words]
    return "does" in lows and word.endswith("s") and not {word[:-1], word[:-2]}.isdisjoint(lows)


def _about_other_owner(question: Question, line: _Line) -> bool:
    """Whether a sentence is about such a thing of somebody else: "Ana's thesis" if the question is about Ben's."""
    asked = [(stem_of(one["owner"]), stem_of(one["noun"])) for one in _POSSESSED.finditer(question.text)]
    owned = list(_POSSESSED.finditer(line.sentence.text)) if asked else []
    return any(
        owner not in line.sentence.stems
        and any(noun in (stem_of(one["noun"]), stem_of(one["next"] or "")) for one in owned)
        for owner, noun in asked
    )


def _about_variant(question: Question, line: _Line) -> bool:
    """Whether a sentence is about another variant of the thing asked about ("staging database" for "production")."""
    for kind, head in itertools.pairwise(Sentence(question.text, 0).words):
        if (
            kind.closes
            or not _is_modifier(kind)
            or head.stem not in question.terms
            or kind.stem in line.stems
        ):
            continue
        if kind.stem in line.around or kind.stem not in question.terms or degree(kind.stem, line.stems, ""):
            continue
        pairs = itertools.pairwise(line.sentence.words)
        before = [one for one, after in pairs if after.stem == head.stem and not one.closes]
        if before and all(_is_modifier(one) and one.stem not in question.terms for one in before):
            return True
    return False


def _about_other_compound(question: Question, line: _Line) -> bool:
    """Whether a sentence has a compound that differs in one word from one in the question: "get-in", "get-out"."""
    pairs = [parts for word in line.sentence.words if (parts := _compound_parts(word))]
    asked = (
        [parts for word in Sentence(question.text, 0).words if (parts := _compound_parts(word))]
        if pairs
        else []
    )
    return any(
        one not in pairs and any((one[0] == other[0]) != (one[1] == other[1]) for other in pairs)
        for one in asked
    )


def _compound_parts(word: Word) -> list[str]:
    """The words of a compound of two; none for other words, or if one has a single letter ("e-mail")."""
    parts = word.low.split("-")
    return parts if len(parts) == 2 and all(one.isalpha() and len(one) > 1 for one in parts) else []


def _is_quotable(
    question: Question, wanted: dict[str, float], line: _Line, matched: float, elsewhere: frozenset[str]
) -> bool:
    """Whether a sentence may be quoted whole: it matches most of the question itself."""
    if matched < _MIN_SHARE_WHOLE or not _defines(question, line):
        return False
    stems, names = _with_compounds(line.sentence), _name_stems(question)
    own = {term: degree(term, line.stems if term in names else stems, line.sentence.text) for term in wanted}
    # If only another sentence matches a word, that sentence is preferred.
    left = [
        term for term, weight in wanted.items() if weight >= 1 and not own[term] and term not in line.around
    ]
    return not elsewhere.intersection(left) and (
        sum(weight * own[term] for term, weight in wanted.items()) >= _MIN_OWN_SHARE * sum(wanted.values())
    )


def _defines(question: Question, line: _Line) -> bool:
    """For "what is the X of …": whether a sentence that contains X gives its value instead of only mentioning it."""
    asked = _WHAT_IS.match(question.text)
    if asked is None:
        return True
    head = stem_of(asked["thing"].split()[-1])
    places = [word for word in line.sentence.words if word.stem == head]
    return not places or any(
        _GIVES_VALUE.search(line.sentence.text, word.end, word.end + 40) for word in places
    )


_WAY_ASKED = late(r"\W*how (?:to|(?:do|can|could|should|would|must) (?:i|we|you|one))\b", re.IGNORECASE)


def _is_modifier(word: Word) -> bool:
    """Whether a word may distinguish variants of a thing: not a function word, number or question word."""
    return word.low not in FUNCTION_WORDS and word.low not in _NO_MODIFIERS and not word.low[0].isdigit()


def _answer(question: Question, line: _Line, wanted: dict[str, float]) -> Piece | None:
    """The part of the sentence that answers; None if it cannot (a time is asked for and it has none)."""
    if question.kind is YES_NO:
        return _yes_or_no(question, line, wanted)
    if question.kind is WHY:
        following = line.passage.sentences[line.number + 1 :]
        return reason_after(question, line.sentence, [one.text for one in following])
    found, text = piece(question, line.sentence, line.passage.at), line.sentence.text
    if question.kind is WHEN and found and found.text not in text and ENGLISH_NEGATION.search(text):
        return Piece(trimmed(text), 0.3)  # the year of "will not take place this year"
    return found


def _is_negative(text: str) -> bool:
    """Whether a text negates something, or states that it is forbidden or has ended."""
    return bool(ENGLISH_NEGATION.search(text)) or bool(FORBIDDEN.search(text))


def _yes_or_no(question: Question, line: _Line, wanted: dict[str, float]) -> Piece | None:
    """ "Yes" or "No", with the sentence as evidence; None unless it matches every word of the question."""
    text = line.sentence.text
    heavy = [term for term in wanted if term not in _frame()]
    if not all(degree(term, line.stems, text) for term in heavy):
        return None
    names = _name_stems(question)
    about = [term for term in heavy if term not in names] or heavy
    clauses = [one for one in re.split(r"[,;:]\s|\s(?:and|but)\s", text) if one.strip()]
    clause = max(clauses, key=lambda one: sum(degree(t, Sentence(one, 0).stems, one) for t in about))
    negative = _is_negative(clause)
    rejected = _REJECTED.search(text)
    if rejected is not None:
        rejected_stems = Sentence(rejected[1], 0).stems
        negative = negative or any(term in rejected_stems for term in about)
    word = "No" if negative != _is_negative(question.text) else "Yes"
    return Piece(f"{word}: {text}", 0.5)

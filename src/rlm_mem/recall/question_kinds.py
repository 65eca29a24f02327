"""Kinds of questions whose opening has an outline or a hint on the form of the answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rlm_mem.search.query import question_kind, wants_list
from rlm_mem.text.patterns import late

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlm_mem.text.analysis import Analyser

_ORDER = late(
    r"\b(?:chronolog\w{2,6}|order in which|in (?:which|what) order|"
    r"in (?:the )?(?:right |correct |chronological )?order(?! to\b)|sequence of (?:events|steps)|"
    r"reihenfolge|ordre chronologique|dans l['’]ordre|en orden|in ordine|em ordem)\b",
    re.IGNORECASE,
)
"""Matches a question for an order of events."""
_SUMMARY = late(
    r"\b(?:summar(?:y|ies|i[sz]\w{1,5})|sum up|overview|recap|"
    r"(?:develop|evolv|progress|chang)\w{1,4} (?:over|since|from|throughout|across)|over time|"
    r"zusammenfass\w{0,4}|überblick|résume[rz]?|resumen|resumir|riassu\w{2,6}|resumo)\b",
    re.IGNORECASE,
)
"""Matches a question for a summary or a development, which a few excerpts do not answer."""
_HOW_MANY, _OF_ALL = r"\bhow many (?:[\w'’-]{1,30} ){0,3}?", r"\bhow many\b[^?]{1,200}\b"
"""Begin patterns of a question for a number with a word soon after it, and with one anywhere later."""
_COUNTING = late(
    rf"{_HOW_MANY}(?:different|distinct|various|kinds|types|times)\b|{_OF_ALL}(?:across|throughout)\b|"
    r"\bin how many\b|\bhow often (?:did|have|has|had|was|were)\b|"
    r"\b(?:list|name|enumerate) (?:all|each|every(?:one|thing)?)\b|"
    r"\b(?:what|which)\b[^?]{1,200}\b(?:across|throughout) (?:all )?(?:of )?(?:my|our)\b|"
    r"\b(?:wie ?oft (?:habe?n?|hat|war)|wie ?viele verschiedene|combien de fois|cu[aá]ntas veces|quante volte|"
    r"quantas vezes)\b",
    re.IGNORECASE,
)
"""Matches a question for all things mentioned at several times, or their number."""
_ADDING = late(rf"{_HOW_MANY}total\b|{_OF_ALL}(?:in total|in all|altogether)\b", re.IGNORECASE)
"""Matches a question for a sum, which few statements may contain: its opening has these nearly whole."""
_NUMBER = late(
    r"\b(?:how (?:many|often)|(?:what|which) number of|in total|wie ?viele?|wie oft|combien|cu[aá]nt[oa]s|quant[ei]|"
    r"quant[oa]s)\b",
    re.IGNORECASE,
)
"""Matches a question for a number or a total, in the languages of ``_ORDER``."""
_PEOPLE = late(
    r"\bwho (?:are|were) (?:all )?(?:the )?(?:people|persons|those)\b|\bwho (?:all|else)\b", re.IGNORECASE
)
"""Matches a question for several people."""
_WEIGHING = late(
    r"\W*(?:considering|given|based on|in (?:light|view) of|taking into account) (?:all )?(?:of )?(?:my|our)\b"
    r".{1,600}\b(?:should|shall|can|could|might|do|would) (?:I|we)\b",
    re.IGNORECASE,
)
"""Matches a question for advice that rests on what the user told of: "Considering my budget, how can I …"."""
_LISTED = late(r"[,;] (?:(?:and|or|und|oder|et|ou|y|o|e) )?|[，、；]")
"""Splits a question that lists several things into its parts."""
_TWO = late(r"\b(?:between|compar(?:e|ed|ing)) (.{3,300}?) (?:and|with) ([^,?]{3,300})", re.IGNORECASE)
_TO = late(r"\bcompar(?:e|ed|ing) (.{3,300}?) to ([^,?]{3,300})", re.IGNORECASE)
"""Match two things that a question compares, or the time between two, "from Rome to Oslo" being one thing."""
_PARTS_CHARS, _FEWEST_PARTS, _MAX_PARTS = 1_000, 3, 8
"""Characters of a question that are split into parts, and the fewest and most parts."""
_REQUEST = """
account across ask aspect bring brought chat chronological clear complete comprehensive conversation cover
detailed different discuss everything full give include item list mention number only order overview provide
question raise recap sequence session summarise summarize summary thorough throughout topic total various walk
way one two three four five six seven eight nine ten
"""
"""Words with which an account is asked for, in English; the others are its subject."""
_WORD = late(r"[^\W_](?:[\w'’.-]*\w)?")
_COUNT_TASK = (
    "Name each instance once, concretely and not grouped, with its date, then give their number, or the sum of "
    "amounts. Take the question literally first (what was wanted may not have been done), then say apart what else "
    "could count. More: print_rows(turns(contains=[WORDS]))."
)
_WEIGHED_TASK = (
    "For each thing that the question names, tell what the user did and reached (figures, dates), and what the replies "
    "advised."
)
_DURATION_TASK = (
    "For a time between two dates, give both dates, too; if several events fit, say so and answer for each."
)
"""Hints in the opening of a host-driven session on what answers to such questions often lack."""


FROM_EXCERPTS = "If this answers the question, answer now; else write the first program."
_FROM_OUTLINE = (
    "Answer from this outline now; write one program only for what it needs and no row has (rows are shortened; more "
    "of some, and what was advised: print_rows(turns(chunks=[IDS], points=True)))."
)
"""The last line of an opening. A count needs every instance, of which an outline may lack some."""


class Outlined(NamedTuple):
    """A kind of question whose opening has an outline."""

    chars: int
    """Most characters of the outline."""
    points: bool
    """Whether the outline has headings of the replies."""
    task: str
    """What answers often lack."""
    closing: str = _FROM_OUTLINE
    every: bool = False
    """Whether as many turns as possible are listed, in short rows around what each says of the subject."""


_ORDERED = Outlined(
    5_000,
    False,
    "Answer with as many items as asked, in the order in which each first came up, at least one of each day if the "
    "items suffice: what the turns that fit best were about, by its subject and particulars (who, which tool, "
    "figures); what was asked on (>) may be an item, too. Where more came up, group neighbouring turns, and name in "
    "each item all that is in it.",
)
_SUMMED_UP = Outlined(
    11_000,
    True,
    "Tell by phase, from the first day to the last, of every row about the subject what was asked, done or decided, "
    "and what the reply advised (after |), with names and figures.",
)
_COUNTED = Outlined(4_000, False, _COUNT_TASK, FROM_EXCERPTS, every=True)
_LARGE = 1_000
"""Most chunks of a memory for an order of events of the usual length; of a larger one, topics would be missing."""
_ORDERED_OF_MANY = _ORDERED._replace(chars=9_000)


def outlined(question: str, chunks: int) -> Outlined | None:
    """The kind of outline for a question, or None.

    Args:
        chunks: number of chunks in the store.
    """
    if _ORDER.search(question):
        return _ORDERED if chunks <= _LARGE else _ORDERED_OF_MANY
    if _SUMMARY.search(question):
        return _SUMMED_UP
    return _COUNTED if _COUNTING.search(question) else None


def weighs_several(question: str) -> bool:
    """Whether a question asks for advice that rests on several facts about the user ("Considering my …")."""
    return _WEIGHING.match(question) is not None and len(_LISTED.split(question)) >= _FEWEST_PARTS


def asks_for_several(question: str, *, chat: bool) -> bool:
    """Whether the answer to a question may rest on several statements, of which none need be the best.

    Args:
        chat: whether the memory has chats with an assistant, in which only sums are such questions: others have an
            outline, or ask for one statement.
    """
    if chat:
        return _ADDING.search(question) is not None
    if question_kind(question) == "how_long":
        return False
    return (
        wants_list(question)
        or _NUMBER.search(question) is not None
        or _COUNTING.search(question) is not None
        or _PEOPLE.search(question) is not None
    )


def counting_task(question: str) -> str:
    """What answers to a question for a number or a total often lack; empty for a list."""
    return _COUNT_TASK if _NUMBER.search(question) else ""


def parts_of(question: str) -> Sequence[str]:
    """The parts of a question that are searched for separately: two things compared, or several listed; else none."""
    question = question[:_PARTS_CHARS]
    two = _TWO.search(question) or _TO.search(question)
    if two is not None:
        return two.groups()
    parts = _LISTED.split(question)
    return parts[:_MAX_PARTS] if len(parts) >= _FEWEST_PARTS else ()


def often_lacking(question: str) -> str:
    """What answers to a question to a chat, without an outline, often lack; empty for most kinds."""
    if question_kind(question) == "how_long":
        return _DURATION_TASK
    if _ADDING.search(question) or _COUNTING.search(question):
        return _COUNT_TASK
    return _WEIGHED_TASK if weighs_several(question) else ""


def subject_of(question: str, analyser: Analyser) -> str:
    """The words of a question without those that only ask for an account, such as "order of five items".

    These would find turns about other subjects. The whole question if no word is left.
    """
    if analyser.language != "english":
        return question
    asking = frozenset(map(analyser.stem, _REQUEST.split()))
    subject = " ".join(
        word for word in _WORD.findall(question) if analyser.stem(word.casefold()) not in asking
    )
    return subject if analyser.terms(subject) else question

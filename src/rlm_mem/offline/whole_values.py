"""A figure with the words of its sentence that belong to it: "at most four bushels to the load" for "four bushels"."""

from __future__ import annotations

import re

from rlm_mem.offline.extraction import counted_thing
from rlm_mem.offline.phrases import FUNCTION_WORDS
from rlm_mem.offline.question import Question
from rlm_mem.offline.word_classes import NUMBER, stem_of
from rlm_mem.text.patterns import late

_MAX_BEFORE = 80
"""Characters read before a value; the text after it is bounded by the patterns."""
_LIMIT = late(
    r"\b(?:(?:(?:just|well|slightly) )?(?:under|over|above|below|about|around)|nearly|almost|roughly|approximately|"
    r"approx\.?|at (?:least|most)|(?:no )?(?:more|less|fewer) than) $|[~≈<>±] ?$|(?:^|(?<=[,;:(] ))up to $",
    re.IGNORECASE,
)
"""Words that limit the following figure; not the "up to" in "went up to 12"."""
_RANGE = late(r"(?<![\w.:-])\d{1,4}(?:[:.]\d\d)?(?: [A-Z][a-z]{2,8})? ?(?:to |[–-] ?)$")
"""The beginning of a range that ends with the following value: "14 to 21 August"."""
_ENDS_RANGE = late(r"(?:to|until|till) ")
_NAMED_UNIT = late(r"(?: ?[$€£¥]| (?:euros?|dollars?|pounds?|cents?|pence|francs?|[A-Z]{3})\b)")
_ANY_UNIT = late(r"[ -]?(?P<word>%|[^\W\d_][\w'’²³-]{0,30}+(?!\w)(?:/[^\W\d_]{1,10}+(?!\w))?)")
_MORE = late(r"(?: [^\W\d_][\w'’-]{0,30}){1,2}")
_RATE = late(r" (?:an?|per|every|each) [\w'’-]{1,30}+(?!\w)| each\b| ?/ ?[^\W\d_]{1,20}+(?!\w)")
_STOP = r"(?:[,;!?)]|[.:](?!\d)|$| (?:[(–—-]|and |or |but ))"
_PHRASE = late(
    r" or (?:more|less|fewer|later|earlier|above|below|higher|lower|newer|older|so)\b"
    rf"| (?:of|to|for|from|in|on|at|with|by|before|after|until)(?: [\w'’-]{{1,30}}){{1,4}}?(?={_STOP})"
)
"""Words after a figure up to the end of its clause."""


def whole_value(question: Question, text: str, value: str) -> str:
    """A value of a sentence with its limit ("at most"), unit and rate, and the words that follow in its clause.

    A value without a figure, or one that is not in the sentence, is returned unchanged.
    """
    start = text.find(value)
    if start < 0 or not NUMBER.search(value):
        return value
    end = start + len(value)
    bound = _RANGE.search(text, max(0, start - _MAX_BEFORE), start)
    if bound is None and (opened := _ENDS_RANGE.match(value)):
        bound = _RANGE.search(text, max(0, start - _MAX_BEFORE), start + opened.end())
    amount = question.kind.is_amount
    if bound is None and amount and NUMBER.match(value):
        bound = _LIMIT.search(text, max(0, start - _MAX_BEFORE), start)
    start = bound.start() if bound else start
    if not amount and (unit := _NAMED_UNIT.match(text, end)):
        end, amount = unit.end(), True
    return text[start : _end(question, text, value, end) if amount else end]


def _end(question: Question, text: str, value: str, end: int) -> int:
    """The end of the words that belong to an amount."""
    if NUMBER.fullmatch(text[max(0, end - len(value)) : end].split()[-1]):
        unit = _ANY_UNIT.match(text, end)
        end = unit.end() if unit and unit["word"].lower() not in FUNCTION_WORDS else end
    counted = counted_thing(question)
    if counted and not any(stem_of(word) == counted for word in value.split()):
        more = _MORE.match(text, end)
        words = more.group().split() if more else []
        place = next((n for n, word in enumerate(words) if stem_of(word) == counted), None)
        if place is not None:
            end += sum(len(word) + 1 for word in words[: place + 1])
    rate = _RATE.match(text, end)
    end = rate.end() if rate else end
    phrase = _PHRASE.match(text, end)
    return phrase.end() if phrase else end

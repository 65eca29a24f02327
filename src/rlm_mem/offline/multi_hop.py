"""Questions over several numbered statements, where the value of each is the subject of the next.

"Who leads the town where Ana lives?", with "3. Ana lives in Porto." and "9. The mayor of Porto is Rui.": the first
statement is about the name in the question, each further one about the value of the previous one. Each step chooses
the statement whose words best match the unmatched words of the question, preferring words close to those matched
before; if statements give different values for the same thing, the one with the highest number is valid.

A search finds statements about one thing, so each value must be searched for before the next step: ``follow``
returns the next query, and is called again with the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rlm_mem.offline.numbered import ASKING, is_derivation, numbered_lines, read_numbered
from rlm_mem.offline.passages import Passage, Reading, Sentence, Word
from rlm_mem.offline.phrases import FUNCTION_WORDS
from rlm_mem.offline.question import Question
from rlm_mem.offline.word_classes import degree
from rlm_mem.record import FrozenRecord
from rlm_mem.text.patterns import word_set

_MAX_STATEMENTS = 1_000
_MAX_ABOUT = 60  # statements about one thing
_MAX_ASKED = 60  # words of the question
_MAX_FRAME = 20  # words of a statement before its value
_MAX_STEPS = 5
_MAX_SOUGHT = 8
_MAX_NAME = 12  # words
_MIN_STEPS = 2  # answers from one statement are left to `read_numbered`
_MIN_MET = 0.5
_MAX_UNMET = 1
"""Most unmatched words at the head of a question, such as "city" before "capital"; with more, the last statement
does not answer it."""
_CLASSES = word_set("country nation city town place location kind sort type field language continent person")
_LIGHT = word_set("serve serves hold holds held responsible recognized recognised individual person people")
_OWN_WORDS = 2.0
"""Weight of the share of a statement's words that are in the question, relative to one word of distance in it."""
_IN_NAMES = word_set("of the and de for on in")
_HELD, _CONFIDENCE = 0.8, 0.7


class _Statement(FrozenRecord, frozen=True):
    number: int
    text: str
    words: tuple[Word, ...]
    value: int  # number of the first word of the value
    passage: Passage

    @property
    def frame(self) -> str:
        """The words before the value, between spaces."""
        return f" {' '.join(word.low for word in self.words[: self.value])} "


class _Step(FrozenRecord, frozen=True):
    score: float
    statement: _Statement
    met: tuple[int, ...]  # places of matched words in the question, nearest to the previous step first


def follow(question: Question, passages: Sequence[Passage], sought: Sequence[str]) -> Reading | str | None:
    """Follow numbered statements from the name in a question to its answer.

    Args:
        passages: all passages found so far, by the question and by the searches in ``sought``.
        sought: the queries that this function has returned so far.

    Returns:
        the answer; or the next query, to be added to ``sought`` for the next call; None if no statements lead to an
        answer, or if a single statement answers.
    """
    lines = numbered_lines(question, passages)[:_MAX_STATEMENTS]
    single = read_numbered(question, passages) if lines else None
    if not lines or (single is not None and single.exact):
        return None
    statements = [one for line in lines if (one := _statement(*line)) is not None]
    question_words = Sentence(question.text, 0).words[:_MAX_ASKED]
    name, place = _name(question_words, statements)
    if not name:
        return None
    rest = {
        number: word
        for number, word in enumerate(question_words)
        if _is_content(word) and not place <= number < place + len(name.split())
    }
    steps: list[_Statement] = []
    content, first = dict(rest), len(question_words)
    while rest and len(steps) < _MAX_STEPS:
        if steps:
            if single is not None and len(steps) == 1 and all(word.low in _CLASSES for word in rest.values()):
                return None  # "the country of citizenship" needs no further statement
            wanted = " ".join((_value(steps[-1]), *(word.text for word in rest.values())))
            if wanted not in sought:
                return wanted if len(sought) < _MAX_SOUGHT else None
        step = _best_step(_statements_about(name, statements), rest, place)
        if step is None:
            break
        for number in step.met:
            del rest[number]
        steps.append(step.statement)
        first = min(first, *step.met)
        name = " ".join(word.low for word in step.statement.words[step.statement.value :])
        place = step.met[0]
    missed = [word for number, word in content.items() if number < first and word.low not in _LIGHT]
    if len(steps) < _MIN_STEPS or len(missed) > _MAX_UNMET:
        return None
    used = dict.fromkeys(one.passage for one in reversed(steps))
    return Reading(_value(steps[-1]), tuple(used), _HELD, _CONFIDENCE)


def _is_content(word: Word) -> bool:
    return word.low.removesuffix("'s") not in ASKING and word.text not in '"“”'


def _statement(number: int, text: str, passage: Passage) -> _Statement | None:
    sentence = Sentence(text.removesuffix("."), 0)
    words = sentence.words
    value = _value_place(words)
    return (
        None
        if sentence.asks or not 0 < value <= _MAX_FRAME
        else _Statement(number, text, words, value, passage)
    )


def _value_place(words: Sequence[Word]) -> int:
    """The number of the first word of the value: a name at the end, or the words after the last function word."""
    place = len(words) - 1
    if place < 1:
        return 0
    if words[place].text[:1].islower():
        while place and words[place - 1].low not in FUNCTION_WORDS:
            place -= 1
        return place
    while place and not words[place - 1].text[:1].islower():
        place -= 1
        in_name = place > 1 and words[place - 1].low in _IN_NAMES and not words[place - 2].text[:1].islower()
        if in_name:  # "Ana of Porto", "Duke of the North"
            place -= 1
    return place


def _value(statement: _Statement) -> str:
    return statement.text[statement.words[statement.value].start :].strip().removesuffix(".")


def _name(asked: Sequence[Word], statements: Sequence[_Statement]) -> tuple[str, int]:
    """The longest name in a question that is the subject of a statement, and its place in the question."""
    frames = [one.frame for one in statements]
    low = [word.low.removesuffix("'s") for word in asked]
    for length in range(min(_MAX_NAME, len(low)), 0, -1):
        for place in range(1, len(low) - length + 1):
            if asked[place].text[:1].isupper() and low[place] not in ASKING:
                name = " ".join(low[place : place + length])
                if any(f" {name} " in frame for frame in frames):
                    return name, place
    return "", 0


def _statements_about(name: str, statements: Sequence[_Statement]) -> list[tuple[_Statement, list[Word]]]:
    """The current statements about a thing, each with its words outside the name and the value."""
    found: dict[str, tuple[_Statement, list[Word]]] = {}
    parts = name.split()
    for one in statements:
        if f" {name} " not in one.frame or (one.frame in found and found[one.frame][0].number > one.number):
            continue
        words = one.words[: one.value]
        low = [word.low for word in words]
        place = next(n for n in range(len(low)) if low[n : n + len(parts)] == parts)
        end = place + len(parts)
        beside = [words[n].text for n in (place - 1, end) if 0 < n < len(words)]
        if any(text[:1].isupper() for text in beside):
            continue  # a longer name
        found[one.frame] = (one, [word for word in (*words[:place], *words[end:]) if _is_content(word)])
    return list(found.values())[:_MAX_ABOUT]


def _best_step(
    statements: Sequence[tuple[_Statement, list[Word]]], rest: dict[int, Word], place: int
) -> _Step | None:
    """The statement that best matches the unmatched words of a question; None if none matches any."""
    found: list[_Step] = []
    for statement, words in statements:
        places: dict[int, float] = {}
        total = 0.0
        for word in words:
            fit, near, number = max(
                (_match(asked.stem, word.stem, word.low), -abs(n - place), n) for n, asked in rest.items()
            )
            if fit >= _MIN_MET:
                places[number] = near
                total += fit
        if places:
            score = max(places.values()) + _OWN_WORDS * total / len(words)
            found.append(_Step(score, statement, tuple(sorted(places, key=places.__getitem__, reverse=True))))
    return max(found, key=lambda one: (one.score, one.statement.number), default=None)


@lru_cache(maxsize=4096)
def _match(asked: str, own: str, word: str) -> float:
    """How well a word of a statement matches a stem of the question, 0 to 1."""
    found = degree(asked, frozenset((own,)), word)
    return max(found, 0.8) if is_derivation(asked, own) else found

"""The sets' own rules of scoring, and judges: a model that is asked about an answer by three prompts."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import Stemmer

from answers.sets import Case

PROMPTS = Path(__file__).parent / "prompts"
JUDGES = ("strict", "lenient", "graded")
"""Prompts `judge_NAME.txt`: the same fact in any words; anything that touches on it; a mark from 0 to 1."""

_STEMMER = Stemmer.Stemmer("porter")
_BARE = str.maketrans("", "", string.punctuation)
_ARTICLES = frozenset(("a", "an", "the", "and"))
_NO_ANSWER = re.compile(
    r"no information available|not mentioned|not held|does not (?:hold|say|mention)", re.I
)
_MARK = re.compile(r"(?:score|mark|answer)?\W*(0(?:\.\d+)?|1(?:\.0+)?|\.\d+)\b", re.I)


def terms(text: str) -> list[str]:
    """Words as LoCoMo compares them: lower case, no punctuation, no articles, Porter stems."""
    words = text.lower().replace(",", "").translate(_BARE).split()
    return [_STEMMER.stemWord(word) for word in words if word not in _ARTICLES]


def token_f1(answer: str, gold: str) -> float:
    """F1 of the words of two answers."""
    one, other = terms(answer), terms(gold)
    both = sum((Counter(one) & Counter(other)).values())
    return 2 * both / (len(one) + len(other)) if both else 0.0


def locomo_score(case: Case, answer: str | None) -> float:
    """Token F1; the mean over the parts of a multi-hop answer; abstention where there is none."""
    if not case.gold:
        return float(answer is None or bool(_NO_ANSWER.search(answer)))
    if answer is None:
        return 0.0
    gold = case.gold[0]
    if case.kind == "multi-hop":
        parts, said = gold.split(","), answer.split(",")
        return sum(max(token_f1(one, part) for one in said) for part in parts) / len(parts)
    if case.kind == "open-domain":
        gold = gold.split(";")[0]
    return token_f1(answer, gold)


def facts_score(case: Case, answer: str | None) -> float:
    """Whether an accepted answer occurs in the reply, case aside."""
    said = (answer or "").lower()
    return float(any(gold.lower() in said for gold in case.gold))


def choice_score(case: Case, answer: str | None) -> float:
    """Whether the letter is right."""
    return float(chosen(case, answer) in case.gold)


def chosen(case: Case, answer: str | None) -> str | None:
    """The letter that a reply chooses: the last one in brackets, else the one that it is or begins with."""
    said = (answer or "").strip().lower()
    bracketed = [letter for letter in re.findall(r"\(([a-z])\)", said) if letter in case.options]
    if bracketed:
        return bracketed[-1]
    match = re.match(r"(?:option |answer:? ?)?([a-z])\b(?=[\s.:)]|$)", said)
    return match[1] if match and match[1] in case.options else None


OWN_RULES: dict[str, Callable[[Case, str | None], float]] = {
    "locomo": locomo_score,
    "facts": facts_score,
    "personamem": choice_score,
}
"""BEAM has none: its rubric needs a judge."""


def held(case: Case, read: str) -> bool | None:
    """Whether the text that was read has all words of an accepted answer; None where there are none in words."""
    if not case.gold or case.options:
        return None
    seen = set(terms(read))
    return any(set(terms(gold)) <= seen for gold in case.gold)


def prompt(name: str, **values: str) -> str:
    """A prompt of the folder `prompts`, with its fields filled in."""
    text = (PROMPTS / f"{name}.txt").read_text(encoding="utf-8")
    # One pass: text in a value is never replaced as a field.
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], text)


def judged(case: Case, answer: str | None, ask: Callable[[str], str]) -> dict[str, float | None]:
    """The marks of a judge: the rubric for BEAM, else the three prompts; None where its reply is not a mark.

    Args:
        ask: sends a prompt to the model and returns its reply.
    """
    said = answer if answer is not None else "I do not know: the memory does not hold it."
    if case.rubric:
        marks = [
            mark_of(ask(prompt("judge_rubric", question=case.question, answer=said, point=point)))
            for point in case.rubric
        ]
        given = [mark for mark in marks if mark is not None]
        return {"rubric": sum(given) / len(given) if len(given) == len(marks) else None}
    if case.options:
        return {}
    gold = " or ".join(case.gold) or "There is no answer; the right reply says so."
    return {
        name: mark_of(ask(prompt(f"judge_{name}", question=case.question, gold=gold, answer=said)))
        for name in JUDGES
    }


def mark_of(reply: str) -> float | None:
    """The mark from 0 to 1 at the end of a reply, or None."""
    lines = [line for line in reply.strip().splitlines() if line.strip()]
    match = _MARK.fullmatch(lines[-1].strip().rstrip(".")) if lines else None
    return float(match[1]) if match else None


def figures(case: Case, answer: str | None, read: str) -> dict[str, Any]:
    """Score by the set's own rule (None: it needs a judge), and whether the text that was read contained the answer."""
    rule = OWN_RULES.get(case.set)
    return {"score": None if rule is None else rule(case, answer), "held": held(case, read)}

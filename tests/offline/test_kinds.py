"""Kinds of questions: the offline model describes each of them above its first program."""

from __future__ import annotations

import pytest

from rlm_mem.offline import question_kinds
from rlm_mem.offline.model import describe
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import KINDS, QuestionKind


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_of_question_has_words(kind: QuestionKind) -> None:
    asked = Question(text="", kind=kind, names=(), terms=(), strong=frozenset())
    assert describe(asked) == f"Asked for: {kind.words}."
    assert kind.words


def test_every_kind_is_listed_under_its_own_name() -> None:
    """One that is not in ``KINDS`` is never recognised, and two of the same name share their weights."""
    defined = {
        name.lower(): one for name, one in vars(question_kinds).items() if isinstance(one, QuestionKind)
    }
    assert defined == {kind.name: kind for kind in KINDS}
    assert len(defined) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_holds_for_a_kind_does_not_contradict_itself(kind: QuestionKind) -> None:
    assert not kind.is_amount or kind.is_measured
    assert not kind.is_measured or kind.has_form
    assert kind.has_form + kind.is_closed + kind.is_open <= 1

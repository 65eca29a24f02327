"""Kinds of questions: the offline model describes each of them above its first program."""

from __future__ import annotations

import pytest

from rlm_mem.offline.model import describe
from rlm_mem.offline.question import _KINDS, Question


@pytest.mark.parametrize("kind", [*dict(_KINDS), "yes_no", "choice"])
def test_every_kind_of_question_has_words(kind: str) -> None:
    asked = Question(text="", kind=kind, names=(), terms=(), strong=frozenset())
    assert describe(asked).startswith("Asked for: "), "add the kind to `_KIND_WORDS` of offline/model.py"

"""The closest memories: what is handed out where no passage plainly answers, and when nothing is close at all."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_mem.offline.everyday import degree, stem_of
from rlm_mem.offline.language import foreign_terms, is_foreign
from rlm_mem.offline.question import Question
from rlm_mem.offline.said import Passage, Sentence

__all__ = ["closest"]

_MOST = 5


def closest(question: Question, passages: Sequence[Passage]) -> list[Passage]:
    """Up to five passages of different chunks that bear on ``question``, in their order; none where nothing does."""
    found: dict[str, Passage] = {}
    for passage in sorted(passages, key=lambda one: not one.current):
        if len(found) < _MOST and passage.chunk_id not in found and _bears_on(question, passage):
            found[passage.chunk_id] = passage
    return list(found.values())


def _bears_on(question: Question, passage: Passage) -> bool:
    """Whether a passage shares a name or a telling word with the question, or names the same thing."""
    if is_foreign(question.text):
        return bool(foreign_terms(question.text) & foreign_terms(passage.text))
    stems = (
        passage.stems | passage.before_stems | Sentence(passage.heading, 0).stems | {stem_of(passage.author)}
    )
    telling = {*(question.strong or question.terms), *map(stem_of, question.names)}
    return any(degree(term, stems, passage.text) > 0 for term in telling)

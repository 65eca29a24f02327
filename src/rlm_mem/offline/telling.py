"""Read an answer from passages as they stand: by fitted tables, checked by the rules for notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlm_mem.offline.examine import Examined, examine
from rlm_mem.offline.extraction import mostly_alike
from rlm_mem.offline.features import same_person
from rlm_mem.offline.fields import read_field
from rlm_mem.offline.language import quote
from rlm_mem.offline.notes import is_notes, read_notes
from rlm_mem.offline.numbered import read_numbered
from rlm_mem.offline.passages import Passage, Reading
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import HOW_MANY, WHEN, YES_NO
from rlm_mem.offline.weights import Weights, answerable_probability, correct_probability, load_weights
from rlm_mem.offline.word_classes import stem_of
from rlm_mem.text.languages import is_foreign

MAX_DISPUTED = 0.5
"""Highest confidence in an answer if the rules for notes find another one."""
_MATCHED, _MATCHED_LEAST, _MATCHED_MOST = 0.8, 0.4, 0.6
"""If a sentence of the passage matches at least this share of the question, the confidence in an answer of exactly
the kind asked for is at least the second value, and at a full match the third, since the tables, fitted on long
conversations, give too low values."""
_UNSURE = 0.35


def read_as_told(question: Question, passages: Sequence[Passage], weights: Weights | None = None) -> Reading:
    """Answer ``question`` from passages in any order, all of which count as valid. Deterministic."""
    table = weights or load_weights()
    if is_foreign(question.text):
        return quote(question.text, passages)
    numbered = read_numbered(question, passages)
    if numbered is not None:
        return numbered
    if is_notes(passages):
        found, field = read_notes(question, passages), read_field(question, passages)
        if field is None or not found.answer or str(field.answer) in found.answer:
            return field or found
        return found if field.exact and found.confidence > field.confidence else field
    examined = examine(question, passages, table)
    if examined is None:
        return Reading(None, (), 0.0, 0.0)
    answerable = answerable_probability(examined.figures, table)
    confidence = correct_probability(examined.figures, answerable, table)
    if not examined.figures["named"]:
        # The tables were fitted on questions about speakers; for others the rules for notes must agree.
        return _checked_by_rules(question, passages, examined, answerable, confidence)
    by_rules = read_notes(question, passages)
    unsure = answerable < table.bar
    if by_rules.answer is not None and (unsure or by_rules.passages[0] not in examined.passages[:1]):
        if _stated_by_another(question, by_rules.passages[0]):
            return by_rules
        of_form = (
            question.kind.has_form and question.kind is not WHEN
        )  # dates from the tables have their year
        if by_rules.exact and of_form and confidence < _UNSURE and not unsure:
            return Reading(
                by_rules.answer, by_rules.passages, answerable, min(by_rules.confidence, MAX_DISPUTED)
            )
    if (examined.exact or question.kind is YES_NO) and answerable >= table.bar:
        confidence = max(confidence, min(answerable, _min_confidence(examined)))
    return Reading(examined.answer, examined.passages, answerable, confidence)


def _stated_by_another(question: Question, passage: Passage) -> bool:
    """Whether somebody else makes a statement about the person named ("Ben has moved", not "Thanks, Ben!")."""
    if any(same_person(passage.author, name) for name in question.names):
        return False
    names = {stem_of(name) for name in question.names}
    words = (word for sentence in passage.sentences for word in sentence.words)
    return any(word.stem in names and (not word.closes or word.low.endswith("'s")) for word in words)


def _min_confidence(examined: Examined) -> float:
    """Least confidence in an answer of exactly the kind asked for; grows with the matched share of the question."""
    matched = examined.figures["matched"]
    if matched < _MATCHED:
        return 0.0
    return round(_MATCHED_LEAST + (_MATCHED_MOST - _MATCHED_LEAST) * (matched - _MATCHED) / (1 - _MATCHED), 4)


def _checked_by_rules(
    question: Question, passages: Sequence[Passage], found: Examined, answerable: float, confidence: float
) -> Reading:
    """The answer of the tables to a question that is not about a speaker, checked by the rules for notes."""
    by_rules = read_notes(question, passages)
    confidence = max(confidence, min(answerable, _min_confidence(found))) if found.exact else confidence
    if by_rules.answer is None:
        if found.figures["matched"] < found.share_needed:
            return Reading(None, found.passages, min(answerable, by_rules.answerable), 0.0)
        if found.exact:
            return Reading(
                found.answer, found.passages, answerable, min(confidence, found.figures["matched"])
            )
        answer = found.sentence if found.sentence and not question.many else found.answer
        return Reading(answer, found.passages, answerable, min(confidence, _MATCHED_MOST))
    if mostly_alike(by_rules.answer, found.answer):
        use_rules = by_rules.exact and len(by_rules.answer) > len(found.answer) and question.kind is not WHEN
        text = by_rules.answer if use_rules else found.answer  # a date from the tables has its year
        highest = max(answerable, by_rules.answerable)
        return Reading(text, found.passages, highest, max(confidence, by_rules.confidence))
    if found.exact and question.kind is not HOW_MANY and found.figures["matched"] >= _MATCHED:
        # Two different answers of the kind asked for: that of the tables is returned, with limited confidence.
        return Reading(found.answer, found.passages, answerable, min(confidence, MAX_DISPUTED))
    return replace(by_rules, confidence=min(by_rules.confidence, MAX_DISPUTED)) if found.exact else by_rules

"""Kinds of questions: how each is recognised, what it asks for, and what holds for its answers."""

from __future__ import annotations

from rlm_mem.record import FrozenRecord


class QuestionKind(FrozenRecord, frozen=True, eq=False):
    """A kind of question.

    Attributes:
        name: in the names of weights.
        words: what it asks for.
        pattern: a regular expression found in such a question, in any case; empty if recognised otherwise.
        has_form: an answer is recognised by its form, and no sentence without a part of that form answers.
        is_amount: it asks for a number or a duration.
        is_measured: it asks for an amount or a time.
        is_closed: it is answered by yes or no, or by an option that it names.
        is_open: it asks for a reason, a manner or a deed, which takes a statement; several may be valid.
        is_of_event: a new value answers it only if it is a time.
        is_span: of likely answers, the one that overlaps most with the others is taken, not the likeliest.
        may_offer: it may name options, which makes it a choice.
    """

    name: str
    words: str
    pattern: str
    has_form: bool = False
    is_amount: bool = False
    is_measured: bool = False
    is_closed: bool = False
    is_open: bool = False
    is_of_event: bool = False
    is_span: bool = False
    may_offer: bool = False


HOW_LONG = QuestionKind("how_long", "a duration",
    r"\bhow long\b|\bhow (?:many|much) (?:years|months|weeks|days|hours|minutes|time)\b|\bhow old\b",
    has_form=True, is_amount=True, is_measured=True, is_of_event=True, is_span=True)  # fmt: skip
HOW_MANY = QuestionKind("how_many", "a number", r"\bhow (?:many|much|often|high|far|big|tall|deep|heavy|fast"
    r"|large|small|wide|thick)\b|\b(?:what|which) (?:\w+ )?(?:number of|percentage|share|score|price"
    r"|amount|sum|rent|fee|temperature|pressure|height|depth|width|length|weight|speed|distance|dose|capacity"
    r"|volume)\b|^\W*what(?: (?:do|does|did|will|would|has|have|is|are|was|were)|['’]s)\b[^?.]{0,100}"
    r"\b(?:costs?|pay|paying|paid|charged?|rent|fee)\b",
    has_form=True, is_amount=True, is_measured=True)  # fmt: skip
WHEN = QuestionKind("when", "a time", r"\bwhen\b(?! (?:he|she|they|it|you|i|we)\b)"
    r"|\b(?:what|which) (?:\w+ )?(?:year|month|week|weekend|day|date|time of year|season)\b"
    r"|\bsince when\b|\bby what date\b", has_form=True, is_measured=True, is_of_event=True)  # fmt: skip
WHO = QuestionKind("who", "a person", r"\bwho(?:m|se)?\b|\b(?:what|which) (?:\w+ )?(?:person|people)\b",
    has_form=True, may_offer=True)  # fmt: skip
WHERE = QuestionKind("where", "a place", r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|cities|country"
    r"|countries|town|states?|places?|locations?|area)\b", has_form=True, is_span=True)  # fmt: skip
WHY = QuestionKind("why", "a reason",
    r"\bwhy\b|\bwhat (?:\w+ ){0,2}(?:reason|inspired|motivat\w+|made|makes|prompted|caused|led)\b|\breason\b",
    is_open=True, is_of_event=True, is_span=True)  # fmt: skip
HOW = QuestionKind("how", "a manner", r"^\W*(?:\w+ )?how\b",
    is_open=True, is_of_event=True, is_span=True, may_offer=True)  # fmt: skip
NAME = QuestionKind("name", "a name", r"\b(?:name|names|title|titles|called|named|nickname|brand|breed)\b",
    is_span=True, may_offer=True)  # fmt: skip
KIND = QuestionKind("kind", "a kind of thing", r"\b(?:what|which) (?:kind|kinds|type|types|sort|sorts|genre"
    r"|genres|style|colou?r)\b", is_span=True, may_offer=True)  # fmt: skip
DO = QuestionKind("do", "what somebody does", r"\bwhat (?:did|do|does|is|are|was|were|has|have|had|will|would"
    r"|can|could)\b.{0,200}\b(?:do|doing|done|did)\b", is_open=True, is_span=True)  # fmt: skip
WHAT = QuestionKind("what", "a thing", r"\b(?:what|which)\b", is_span=True, may_offer=True)
YES_NO = QuestionKind("yes_no", "yes or no", "", is_closed=True, is_of_event=True, may_offer=True)
CHOICE = QuestionKind("choice", "a choice", "", is_closed=True, is_of_event=True)
KINDS = (HOW_LONG, HOW_MANY, WHEN, WHO, WHERE, WHY, HOW, NAME, KIND, DO, WHAT, YES_NO, CHOICE)
"""All kinds; of those whose patterns are found at the same place, the first one counts."""

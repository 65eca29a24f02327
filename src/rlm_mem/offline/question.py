"""Analysis of a question: its kind, names, content words, focus, options, and whether it asks for several things."""

from __future__ import annotations

import re

from rlm_mem.chunk import normalise_unicode
from rlm_mem.offline.question_kinds import CHOICE, KIND, KINDS, NAME, WHAT, WHEN, WHY, YES_NO, QuestionKind
from rlm_mem.record import FrozenRecord
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.dates import DAY_NAMES, MONTH_NAMES
from rlm_mem.text.options import options_of
from rlm_mem.text.patterns import late, word_set

_PATTERNS = tuple((kind, late(kind.pattern, re.IGNORECASE)) for kind in KINDS if kind.pattern)
_YES_NO = late(
    r"^\W*+(?:(?:so|and|but|then|also),?\s++)?(?:is|are|was|were|am|do|does|did|has|have|had|will|would|can|could|should|"
    r"may|might|isn't|aren't|doesn't|didn't|hasn't|wasn't|won't)\b",
    re.IGNORECASE,
)
_CIRCUMSTANCE = late(
    r"^\W*+(?:(?:and|but|so|then|also|back),?\s++)?(?:when|while|after|before|since|once|if|as)\b(?!\s(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should)\b)[^,?]{1,200},\s++"
    r"(?=(?:(?:in|on|at|for|with|from|to|by|of)\s)?(?:who(?:m|se)?|what|which|where|when|why|how|is|are|was|were|did|do|does"
    r"|has|have|had|can|could|will|would|should)\b)",
    re.IGNORECASE,
)
"""A clause before the question: "When Tim was young, who helped him?"."""
MAX_CHARACTERS = 10_000
"""Characters of a question that are read: as many as a recall accepts."""
_WORD = late(r"\w+(?:['’.&-]\w+)*")
_OPENERS = word_set(
    """
    what which who whom whose when where why how is are was were am do does did has have had will would can
    could should may might in on at for from with after before during the a an to of by about since
    according based tell list name give describe if and so then
    """
)  # fmt: skip
_REQUEST = late(r"\W*(?:[Pp]lease,?\s)?(?P<verb>[^\W\d_]{2,20})\s(?:me|us)\b")
"""A request that frames a question: "Remind me of …"."""
_FIRST_PERSON = late(r"I(?:['’](?:m|ve|d|ll))?")
_OPENING = late(r"(?:\A|[.!?])[^\w.!?]*\Z")
"""Before the first word of a sentence."""
_CALENDAR = frozenset((*MONTH_NAMES, *DAY_NAMES))
# Words of a question that nearly every memory contains.
_WEAK_VERBS = word_set(
    """
    do does did make get go have take like say said tell think want use used mention mentioned happen describe decide
    feel consider considered
    """
)
_WEAK = _WEAK_VERBS | word_set(
    """
    thing things kind type sort many much long name recently first new one time way year month week day date some any
    currently specific particular would likely might person people end team
    """
)
_FOCUS = late(
    r"\b(?:what|which|how many|how much)\s+"
    r"(?:(?:kind|kinds|type|types|sort|sorts|genre|name|names|title|titles)\s+of\s+)?"
    r"(?P<noun>(?:\w[\w'’-]*\s+){0,3}?\w[\w'’-]*)\s+"
    r"(?:is|are|was|were|did|do|does|has|have|had|will|would|can|could|should|might|to|for|from|of|in|on|that|used)\b",
    re.IGNORECASE,
)  # fmt: skip
_PLURAL_WHAT = late(
    r"\b(?:what|which)\s+(?:are|were)\b|\b(?:activities|hobbies|books|events|items|things|places|ways|names|pets|"
    r"instruments|sports|cities|countries|states|games)\b",
    re.IGNORECASE,
)


class Question(FrozenRecord, frozen=True):
    """An analysed question.

    Attributes:
        kind: what it asks for, one of `question_kinds.KINDS`.
        names: capitalised words without possessive endings, except openers such as "What", months and weekdays.
        terms: stems of its content words in order, without names.
        strong: those of ``terms`` that are not everyday words.
        focus: the noun asked for ("books" in "what books has …"), or an empty string.
        many: whether several things are asked for.
        options: the alternatives of a choice.
        grain: for ``WHEN``: ``year``, ``month``, ``week`` or ``day`` if in the question, else empty.
    """

    text: str
    kind: QuestionKind
    names: tuple[str, ...]
    terms: tuple[str, ...]
    strong: frozenset[str]
    focus: str = ""
    many: bool = False
    options: tuple[str, ...] = ()
    grain: str = ""


def analyse_question(text: str) -> Question:
    """Analyse ``text``; any text is accepted, and one that is not a question has the kind ``WHAT``.

    Only its first ``MAX_CHARACTERS`` are read, since the prompt of a program may be of any length.
    """
    plain = " ".join(normalise_unicode("NFC", text[:MAX_CHARACTERS]).split())
    analyser = get_analyser("english")
    request = _REQUEST.match(plain)
    verb = request["verb"] if request else ""
    names = tuple(name for name in _names(plain) if name != verb)
    skip = {stem for name in (*names, verb) for stem in analyser.terms(name)}
    focus = _FOCUS.search(plain)
    noun = focus["noun"].lower() if focus else ""
    # "which make is …": an everyday verb that is asked for is a noun, and no everyday word.
    nouns = {analyser.stem(noun)} if focus and focus["noun"] in _WEAK_VERBS else set()
    terms = tuple(dict.fromkeys(term for term in (*nouns, *analyser.terms(plain)) if term not in skip))
    weak = {analyser.stem(word) for word in _WEAK} - nouns
    kind = _kind(plain)
    options = options_of(plain) if kind.may_offer else ()
    if options:
        kind = CHOICE
    return Question(
        text=plain,
        kind=kind,
        names=names,
        terms=terms,
        strong=frozenset(term for term in terms if term not in weak),
        focus=noun,
        many=_many(plain, noun, kind),
        options=options,
        grain=_grain(plain) if kind is WHEN else "",
    )


def _kind(text: str) -> QuestionKind:
    text = _CIRCUMSTANCE.sub("", text)
    if _YES_NO.search(text):
        return YES_NO
    found = [(m.start(), n, kind) for n, (kind, one) in enumerate(_PATTERNS) if (m := one.search(text))]
    for *_, kind in found:
        if kind.is_amount:
            return kind
    # The first question word decides; of patterns at the same place, the most specific one.
    opening = min((start for start, _, kind in found if kind is not NAME), default=0)
    near = [(order, kind) for start, order, kind in found if start <= opening + 1 or kind in (NAME, KIND)]
    return min(near)[1] if near else WHAT


def _names(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for match in _WORD.finditer(text):
        word = match.group().removesuffix("'s").removesuffix("’s").rstrip("'’")
        lowered = word.lower()
        if not word[:1].isupper() or lowered in _CALENDAR or _FIRST_PERSON.fullmatch(word):
            continue
        if lowered in _OPENERS and _OPENING.search(text, max(0, match.start() - 4), match.start()):
            continue
        found[word] = None
    return tuple(found)


def _many(text: str, noun: str, kind: QuestionKind) -> bool:
    if kind.is_measured or kind.is_closed or kind is WHY:
        return False
    last = noun.split()[-1] if noun else ""
    if last.endswith("s") and not last.endswith(("ss", "us", "is")):
        return True
    return bool(_PLURAL_WHAT.search(text))


def _grain(text: str) -> str:
    found = re.search(
        r"\b(?:what|which)\s+(?:\w+\s+)?(year|month|week|weekend|day|date)\b", text, re.IGNORECASE
    )
    if not found:
        return ""
    return {"date": "day", "weekend": "week"}.get(found[1].lower(), found[1].lower())

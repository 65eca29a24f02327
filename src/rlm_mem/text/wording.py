"""Normalises sentences for the rules: without introduction and parenthesis, with plain verbs, or as a field.

The functions return the tokens of the sentence in order. English only. Each function reads the words a fixed number of
times.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from rlm_mem.text.by_language import HEADINGS
from rlm_mem.text.clauses import (
    CHANGES,
    DAYS,
    DETERMINERS,
    MONTHS,
    PASTS,
    PREPOSITIONS,
    THIRD,
    Token,
    kind_of,
    tokens_of,
    verb_of,
)
from rlm_mem.text.patterns import late, word_set

CORRECTIONS = frozenset(("correction", "update", "updated", "corrected", "edit", "changed", "change", "news"))
"""Labels of a correction or update of an earlier text."""
LABELS = frozenset(
    ("decision", "decided", "note", "news", "reminder", "info", "important", "agreed", "outcome", "fyi")
)
"""Labels that are not speakers."""
DOUBTS = word_set("maybe perhaps supposedly probably if proposal suggestion idea question draft rumour rumor")
"""Words of labels after which nothing is stated: "Proposal: …"."""
TITLES = CORRECTIONS | HEADINGS | word_set("subject re fwd fyi note news update reminder decision status ps")
"""Words of headings and labels that name nobody."""
USERS = frozenset(("user", "human", "me"))
"""Labels of speakers without a name."""
_SHORT = 80
"""Maximum characters of a line that may be a label with a value."""
_BEFORE = frozenset(("before", "previously", "formerly", "earlier", "beforehand", "originally"))
_ONWARD = frozenset(("on", "onward", "onwards", "forward"))
_FILLERS = word_set(
    "today yesterday btw fyi ok okay well so also then and but sorry oops finally officially sadly luckily please"
)
_SINCE = frozenset(("since", "starting", "beginning", "effective"))
_TIMES = word_set(
    "next last month week year today now of from , spring summer autumn fall winter sprint release 's"
)
_LEADS = (
    ("change", "of", "plans"), ("change", "of", "plan"), ("turns", "out"), ("turned", "out"), ("it", "turns", "out"),
    ("it", "turned", "out"), ("as", "it", "turns", "out"), ("as", "it", "turned", "out"), ("i", "was", "wrong"),
    ("we", "were", "wrong"), ("i", "was", "mistaken"), ("i", "stand", "corrected"), ("my", "mistake"), ("my", "bad"),
    ("scratch", "that"), ("heads", "up"), ("good", "news"), ("bad", "news"), ("new", "plan"),
    ("on", "second", "thought"),
)  # fmt: skip
"""Words that introduce a sentence as a correction or an update of an earlier one."""
_LEADS_FROM = {first: tuple(lead for lead in _LEADS if lead[0] == first) for first, *_ in _LEADS}
_LONGEST_LABEL = 6
QUOTES = frozenset('"“”„«»')
_PHRASAL_VERBS = """
cancelled: called off; traded: traded in; swapped: swapped out, switched out; switched: switched over
moved: moved over, brought forward, pushed back, put back, put off, moved back, moved up, moved forward
left: moved away, went away, gone away; dropped: put aside, laid aside, set aside, given up, gave up
resigned: stepped down, stepped back, stepped aside; closed: closed down, shut down; retired: phased out
ended: broke up, broken up, split up; removed: taken down, torn down, thrown out, threw out; stopped: turned off
died: passed away; passed: passed on; rose: went up; risen: gone up; fell: went down, came down; fallen: gone down
raised: scaled up; lowered: scaled down; cut: cut down; uses: took up, taken up
went: went back; gone: gone back; changed: changed back; switched: switched back
"""
_PHRASAL = {
    tuple(phrase.split()): verb.strip()
    for verb, phrases in (line.split(":") for line in _PHRASAL_VERBS.strip().replace(";", "\n").splitlines())
    for phrase in phrases.split(",")
}
"""Phrasal verbs with their plain equivalents."""
PHRASAL, PARTICLES = map(frozenset, zip(*_PHRASAL, strict=True))
_GONE_WITH = {
    ("went", "out", "of", "business"): "retired", ("gone", "out", "of", "business"): "retired",
    ("went", "bankrupt"): "retired", ("gone", "bankrupt"): "retired", ("is", "gone"): "retired",
    ("are", "gone"): "retired", ("is", "out"): "retired", ("are", "out"): "retired", ("is", "off"): "retired",
    ("are", "off"): "retired", ("fell", "through"): "was cancelled", ("fallen", "through"): "been cancelled",
}  # fmt: skip
"""Expressions at the end of a clause for an end, with plain equivalents."""
_CHOSE = frozenset(("decided", "chose", "picked", "selected", "adopted", "uses"))
_WAYS = frozenset(("to", "from", "by", "as", "for"))
_WHEN = frozenset(("time", "day", "date", "number"))
_BE = frozenset(("is", "are", "am", "i'm", "we're", "it's", "he's", "she's", "they're"))
_CHOSEN_WITH = (
    ("ended", "up", "going", "with"), ("ended", "up", "with"), ("went", "with"), ("gone", "with"), ("decided", "on"),
    ("settled", "on"),
)  # fmt: skip
"""Phrasal verbs for a choice: "we went with webhooks"."""
_REPLACED = (
    _BE
    | {"turned", "became", "become", "make", "let's", "agreed"}
    | {phrase[0] for phrase in (*_GONE_WITH, *_CHOSEN_WITH)}
    | {f"re{past}" for past in PASTS}
)
_IN_PLACE = PHRASAL | _REPLACED
"""Words that a plain verb can replace."""


def without_lead(tokens: list[Token], news: str) -> tuple[list[Token], str]:
    """Remove "Correction:", "As of May", "From May on", "Change of plans,"; returns the rest and the marker of news."""
    stop = next((number for number, one in enumerate(tokens[:10]) if one.text == ","), 0)
    if stop > 2 and (tokens[0].low, tokens[1].low) in (("instead", "of"), ("rather", "than")):
        last = len(tokens) - (not tokens[-1].text[0].isalnum())
        tokens = [*tokens[stop + 1 : last], *tokens[:stop]]
    while len(tokens) > 2:
        low = tokens[0].low
        skip, lead_news = _lead(tokens)
        if skip:
            tokens, news = tokens[skip:], news or lead_news
        elif (low in _FILLERS and not (low == "so" and tokens[1].low in ("far", "that"))) or (
            low == "no" and tokens[1].text == ","
        ):
            tokens = tokens[1:]
        elif low == "actually":
            tokens, news = tokens[1:], news or ("correction" if tokens[1].text == "," else "")
        elif low == "now" or tokens[0].text in ",:–—":
            tokens, news = tokens[1:], news or ("now" if low == "now" else "")
        else:
            break
    for number in range(max(3, len(tokens) - 6), len(tokens) - 2):
        if (tokens[number].low, tokens[number + 1].low) == ("as", "of"):
            return tokens[:number], news or "as of"
    return tokens, news


def _lead(tokens: list[Token]) -> tuple[int, str]:
    """The number of introductory tokens and their marker of news: "correction", "as of" or the like."""
    low = [one.low for one in tokens[:8]]
    if (low[0] in CORRECTIONS or low[0] in LABELS) and tokens[1].text in ",:–—":
        return 2, low[0] if low[0] in CORRECTIONS else ""
    for lead in _LEADS_FROM.get(low[0], ()):
        if tuple(low[: len(lead)]) == lead:
            return len(lead), "correction"
    if low[0] in _SINCE or (low[0], low[1]) == ("as", "of"):
        skip = 2 if low[0] == "as" else 1
        while skip < len(tokens) - 2 and (
            tokens[skip].low in MONTHS | DAYS | DETERMINERS | _TIMES or tokens[skip].text[0].isdigit()
        ):
            skip += 1
        return skip, "as of"
    if low[0] == "from":
        place = next((number for number, one in enumerate(low[1:6], 1) if one in _ONWARD), 0)
        if place > 1:
            return place + 1, "from now on"
        if low[1] in MONTHS | DAYS or (len(low) > 2 and low[2] in MONTHS):
            return (2 if low[1] in MONTHS | DAYS else 3), "as of"
    mark = next((number for number, one in enumerate(tokens[: _LONGEST_LABEL + 1]) if one.text == ":"), 0)
    mark = mark if mark + 1 < len(tokens) and tokens[mark + 1].low not in THIRD else 0
    mark = 0 if _chosen_by_us(tokens[mark + 1 :]) else mark  # "Ledger: we decided PostgreSQL" is a field
    if 0 < mark < len(tokens) - 2 and verb_of(tokens[mark + 1 :])[0] >= 1 and verb_of(tokens[:mark])[0] < 0:
        is_update = any(one in CORRECTIONS or one == "new" for one in low[:mark])
        if is_update or all(one not in DETERMINERS for one in low[:mark]):
            return mark + 1, "update" if is_update else ""
    return 0, ""


def without_aside(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """Remove ", it was A before", "(formerly A)" or a final "; previously it was A"; returns the rest and A."""
    low = [one.low for one in tokens]
    last = len(low) - 1
    while last > 0 and not low[last][0].isalnum():
        last -= 1
    inner = next(
        (number for number in range(1, min(last, 9)) if low[number] in _BEFORE and low[number - 1] in ",("), 0
    )
    shut = (
        next((number for number in range(inner + 1, min(last, inner + 8)) if low[number] in ",)"), 0)
        if inner
        else 0
    )
    if shut:  # "the exam, originally on 5 May, is on 9 May"
        return [*tokens[: inner - 1], *tokens[shut + 1 :]], [
            one for one in tokens[inner + 1 : shut] if one.low not in PREPOSITIONS
        ]
    for number in range(max(2, last - 8), last + 1):
        opener = tokens[number - 1].text
        if opener not in (",", "(", ";", "–", "—"):
            continue
        rest = tokens[number : last + 1]
        begins = rest[0].low in _BEFORE
        rest = rest[begins:]
        if rest and rest[0].low in ("it", "he", "she", "they", "that", "this"):
            rest = rest[1 : None if len(rest) > 2 and rest[1].low in ("was", "were") else 1]
        was = bool(rest) and rest[0].low in ("was", "were")
        rest = rest[was:]
        ends = bool(rest) and rest[-1].low in _BEFORE
        rest = rest[: len(rest) - ends]
        if rest and (begins or (was and (ends or opener == "("))):
            return tokens[: number - 1], rest
    return tokens, []


def in_plain_verbs(tokens: list[Token]) -> list[Token]:
    """Replace phrasal verbs by plain ones: "called off", "put the book aside", "we ended up going with"."""
    if _IN_PLACE.isdisjoint([one.low for one in tokens]):
        return tokens
    made: list[Token] = []
    number = 0
    while number < len(tokens):
        if tokens[number].low in _IN_PLACE:
            number += _add_plain_verb(tokens, number, made)
        else:
            made.append(tokens[number])
            number += 1
    return made


def _add_plain_verb(tokens: list[Token], number: int, made: list[Token]) -> int:
    """Add plain words for the phrasal verb at a place, or its first word if it is none; return how many it has.

    Args:
        made: the words before it, of which a form of "be" may be removed.
    """
    one = tokens[number]
    low = tuple(other.low for other in tokens[number : number + 4])
    is_now = [replace(one, low="is"), replace(one, text="now", low="now")]
    if one.low == "let's":
        made.append(replace(one, low="we"))
        return 1
    if low[:2] in (("decided", "to"), ("agreed", "to")) and made and low[2:3] == ("use",):
        return 2  # "we decided to use B"
    if (
        one.low in _BE
        and low[1:3] in (("down", "to"), ("up", "to"))
        and len(low) > 3
        and low[3][:1].isdigit()
    ):
        made.append(replace(one, low="fell" if low[1] == "down" else "rose"))
        return 2
    if one.low in _BE and low[1:3] == ("back", "to"):
        made.append(replace(one, low="went"))
        return 2
    if (
        one.low in ("turned", "became", "become")
        and made
        and (one.low != "turned" or (low[1:2] and low[1][0].isdigit()))
    ):
        made += is_now
        return 1
    again = one.low[2:] if one.low.startswith("re") else ""
    if (
        again in PASTS
        and made
        and made[-1].low in ("been", "was", "were")
        and low[1:2]
        and low[1] in PREPOSITIONS - _WAYS
    ):
        while made and made[-1].low in ("been", "was", "were", "has", "have"):
            made.pop()
        made += [*is_now, replace(one, low=again)]
        return 1
    if (
        low[:2] in (("make", "that"), ("make", "it"))
        and made
        and kind_of(tokens[number + 2 : number + 4]) in _WHEN
    ):
        if made[-1].text in ":,–—":  # "the picnic: make that four"
            made.pop()
        made += is_now
        return 2
    chosen = next((some for some in _CHOSEN_WITH if low[: len(some)] == some), None)
    # "we decided on Tuesday"
    if chosen is not None and made and kind_of(tokens[number + len(chosen) :][:2]) not in _WHEN:
        made.append(replace(one, low="uses"))
        return len(chosen)
    gone = next((some for some in _GONE_WITH if low[: len(some)] == some), None)
    if gone is not None and (
        number + len(gone) == len(tokens) or not tokens[number + len(gone)].low.isalpha()
    ):
        made += [replace(one, low=low) for low in _GONE_WITH[gone].split()]
        return len(gone)
    place = _particle(tokens, number) if one.low in PHRASAL else 0
    if not place:
        made.append(one)
        return 1
    made.append(replace(one, low=_PHRASAL[one.low, tokens[place].low]))
    made += tokens[number + 1 : place]
    preposition = place + 1 < len(tokens) and tokens[place + 1].low in ("with", "on")
    return place + 1 - number + (preposition and made[-1].low in _OBJECT_AFTER)


_OBJECT_AFTER = frozenset(("ended", "dropped"))
"""Verbs whose object follows a preposition: "broke up with Ana"."""


def _particle(tokens: list[Token], number: int) -> int:
    """The position of a phrasal verb's particle, directly after it or after its object; 0 if absent."""
    verb = tokens[number].low
    for place in range(number + 1, min(number + 6, len(tokens))):
        low = tokens[place].low
        if low in PARTICLES and (verb, low) in _PHRASAL:
            after = tokens[place + 1] if place + 1 < len(tokens) else None
            apart = place > number + 1 and after is not None and (
                after.low in DETERMINERS or after.text[:1].isupper() or after.text[:1].isdigit()
            )  # fmt: skip
            return 0 if apart else place
        if not (low.isalnum() or "-" in low) or low in ("and", "but", "from", "to"):
            return 0
    return 0


def field_of(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """Label and value of a field such as "Port: 8081"; two empty lists for other lines."""
    mark = next((number for number, one in enumerate(tokens[: _LONGEST_LABEL + 1]) if one.text in ":="), 0)
    label, value = tokens[:mark], tokens[mark + 1 :]
    value = value[_chosen_by_us(value) :]
    while value and value[-1].text in ".,;)":
        value = value[:-1]
    if (
        not label
        or not value
        or len(value) > _LONGEST_LABEL
        or not all(one.low[:1].isalnum() for one in label)
    ):
        return [], []
    if len(label) > 1 and label[-1].low in CHANGES:
        label = label[:-1]  # "default port changed: 80 -> 8080"
    if any(one.text in ",;:" for one in value) or (len(label) == 1 and label[0].low in LABELS | CORRECTIONS):
        return [], []
    return (label, value) if verb_of(label)[0] < 0 and (len(value) < 3 or verb_of(value)[0] < 0) else ([], [])


def _chosen_by_us(value: list[Token]) -> int:
    """The number of words before a chosen thing (two in "we decided PostgreSQL"); 0 if there is no choice."""
    chosen = len(value) > 2 and value[0].low in ("we", "i") and value[1].low in _CHOSE
    return 2 if chosen and value[2].text[0].isupper() else 0


def is_field(text: str) -> bool:
    """Whether a text is a label with a value ("Cache TTL: 300 s"), not words of a speaker ("Ana: at eight")."""
    label, value = field_of(tokens_of(text)) if len(text) <= _SHORT else ([], [])
    return any(one.text[0].isdigit() for one in value) and label[-1].low not in USERS


_CITED = late(
    r"(?:[:,]|\b(?:says?|said|reads?|writes?|wrote|states?)) {0,2}[\"“„«]([^\"“”„«»]{12,400})[\"”“»]",
    re.IGNORECASE,
)
_NAME = 3
"""Maximum words of a quotation that may be a name or value."""


def is_quoted(text: str) -> bool:
    """Whether a sentence quotes somebody else.

    It begins with a quotation that ends early, or cites several words after a colon or verb of saying.
    """
    if text[:1] in QUOTES and not QUOTES.isdisjoint(text[1:]):
        return True
    cited = _CITED.search(text)
    return cited is not None and len(cited[1].split()) > _NAME


WORDED = (
    CORRECTIONS | LABELS | _BEFORE | _FILLERS | _SINCE | _REPLACED | {lead[0] for lead in _LEADS}
    | {"instead", "rather", "from", "as", "now", "no", "actually", "was", "were", ":", "=", "-", "–", "—"}
)  # fmt: skip
"""Words and marks without which a sentence needs no rewriting, unless it has a phrasal verb with its particle."""

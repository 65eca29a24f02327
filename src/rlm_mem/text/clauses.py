"""Splits sentences into clauses, and finds their verbs and complements. Tables and rules, English only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import sub

from msgspec import Struct, field

from rlm_mem.text.analysis import LONGEST, plain_words
from rlm_mem.text.irregular import irregular_pasts
from rlm_mem.text.patterns import late, word_set

_TOKEN = late(r"[^\W_]+(?:['’.:,/@+&%_-]+[^\W_]+)*[%+]?|->|[.,;:!?()=→–—]")
DETERMINERS = word_set("the a an this that these those some any each every both its")
FIRST = word_set("i we me us my our mine ours myself i'm i've we've we're")
THIRD = word_set("he she it they him her them his their")
POSSESSIVES = word_set("my our his her their its your")
BE = {"is": "", "am": "", "are": "", "'s": "", "isn't": "not", "aren't": "not", "i'm": "", "we're": "", "she's": "",
       "he's": "", "it's": "", "they're": ""}  # fmt: skip
AUXILIARIES = word_set(
    "has have had was were been be being just recently finally already also get got gets today yesterday "
    "then since officially now meanwhile i've we've"
)
UNSURE = word_set(
    "if whether would could should might may will shall i'll we'll he'll she'll they'll 'll i'd we'd "
    "won't wouldn't plan plans planned planning think thinks thinking thought consider considers "
    "considering considered want wants wanted hope hopes hoped wish wishes maybe perhaps probably "
    "possibly almost nearly imagine suppose supposedly asked ask asks why how who which whose when until "
    "unless pretend rumour rumours rumor claims claimed heard story novel dreamt dreamed joked joke "
    "example hypothetically going discuss discussed discussing suggested suggests proposed proposes try "
    "tries trying tried decided decide need needed wanted"
)
PREPOSITIONS = word_set("at on in to from with for as by into onto via under over near behind inside within")
_OWNERS = DETERMINERS | POSSESSIVES
_BEFORE_NOUNS = _OWNERS | PREPOSITIONS | {"of", "new", "to"}
_BEFORE_OBJECTS = _OWNERS | PREPOSITIONS
_CUT = word_set(
    "because since while when after before until so which who that where although though but if whereas "
    "due and or than"
)
ADVERBS = word_set(
    "now currently nowadays presently anymore again still already just always usually only also too "
    "actually really simply mostly finally recently today tonight officially instead sadly luckily "
    "permanently exactly about around roughly"
)
_PHRASES = (
    ("from", "now", "on"), ("these", "days"), ("any", "more"), ("any", "longer"), ("for", "now"),
    ("at", "the", "moment"), ("until", "further", "notice"), ("going", "forward"), ("as", "of", "now"),
    ("as", "of", "today"), ("this", "weekend"), ("this", "week"), ("this", "month"), ("this", "year"),
    ("last", "week"), ("last", "month"), ("as", "well"), ("a", "month"), ("a", "day"), ("a", "week"), ("a", "year"),
    ("per", "month"), ("per", "day"), ("per", "week"), ("per", "year"),
)  # fmt: skip
"""Phrases that are ignored in comparisons; those in `_NEWS_PHRASES` mark something as new."""
_PHRASES_FROM = {first: tuple(one for one in _PHRASES if one[0] == first) for first, *_ in _PHRASES}
NEWS = word_set("now nowadays currently anymore instead")
_NEWS_FROM = NEWS.union(_PHRASES_FROM)
"""Words without which :func:`without_news` removes nothing."""
_NEWS_PHRASES = {
    ("from", "now", "on"), ("these", "days"), ("any", "more"), ("any", "longer"), ("as", "of", "now"),
    ("as", "of", "today"), ("going", "forward"),
}  # fmt: skip
MONTHS = word_set(
    "january february march april may june july august september october november december jan feb mar "
    "apr jun jul aug sep sept oct nov dec"
)
DAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
NUMBERS = word_set(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred "
    "thousand"
)
_PARTICLES = word_set("up out off down away back aside")
_WORDS = 1 << 15
"""Maximum number of words with a cached classification."""
_FIRST_WORDS = 9
"""Number of words at the start of a clause that are searched for an unknown verb."""
_NUMBER_SIGNS = frozenset(("no", "nr", "number", "."))
"""Words and marks between a noun and its number: "pump no. 3"."""
_NO_NOUN = (
    DETERMINERS
    | POSSESSIVES
    | PREPOSITIONS
    | AUXILIARIES
    | ADVERBS
    | FIRST
    | THIRD
    | word_set("and or of that")
)
_NO_VERB = (
    _NO_NOUN | UNSURE | _PARTICLES | NUMBERS | MONTHS | DAYS | NEWS
    | word_set("not no longer never always than but if as there here more less only even very much many not per too "
            "this last next old new own same other few all both most its also off out was were been will can cannot")
)  # fmt: skip
_NO_SUBJECT = (
    DETERMINERS | POSSESSIVES | PREPOSITIONS | word_set("of and or new old to very more less most no my our")
)
_NAMED = late(r"\A[^\W\d_](?:[^\W_]*[\d._/@]|[^\W_]*-\d)")
"""Technical names: paths, addresses, versions."""
_ISO_DATE = late(r"\d{4}-\d{2}")
_CLOCK = late(r"\d{1,2}(?::\d{2}|(?:[.:]\d{2})?(?:am|pm))\Z")

_STATES = {
    "live": "live", "reside": "live", "stay": "live", "work": "work", "use": "use", "prefer": "prefer",
    "cost": "cost", "weigh": "weigh", "start": "start", "begin": "start", "end": "end", "finish": "end",
    "expire": "end", "open": "open", "close": "close", "meet": "meet", "rehearse": "meet", "gather":
    "meet", "report": "report", "drive": "drive", "run": "run", "listen": "listen", "pay": "pay",
    "earn": "earn", "take": "take", "leave": "leave", "arrive": "arrive", "depart": "leave", "need":
    "need", "require": "need", "have": "have", "own": "have", "play": "play", "drink": "drink", "eat":
    "eat", "read": "read", "buy": "buy", "go": "go", "study": "study", "teach": "teach", "speak":
    "speak", "like": "like", "love": "like", "hate": "hate", "lead": "lead", "manage": "lead", "host":
    "host", "sit": "sit", "sleep": "sleep", "belong": "belong", "contain": "have", "allow": "allow",
    "support": "support", "smoke": "smoke", "wear": "wear", "train": "train", "bank": "bank",
    "subscribe": "use", "rely": "use", "attend": "attend", "rent": "rent", "lock": "lock", "charge":
    "cost", "deploy": "deploy", "store": "store", "keep": "keep", "expect": "expect", "date": "date",
    "ship": "ship", "return": "return", "stand": "stand", "point": "point", "practise": "train",
    "practice": "train", "swim": "swim", "ride": "drive", "vote": "vote", "write": "write", "sing":
    "sing", "get": "get", "help": "help", "share": "share", "watch": "watch", "cook": "cook", "order": "buy",
}  # fmt: skip
FAMILIES = {family: tuple(verb for verb in _STATES if _STATES[verb] == family) for family in _STATES.values()}
"""The verbs of each attribute; statements of an attribute may use any of them."""
FAMILIES["change"] = (*FAMILIES["live"], "based", "located", "lives", "office")
OTHER = "other:"
"""Prefix of the family of a verb that is in no table."""
PASTS = irregular_pasts()
_CHOSEN = {"chose": "choose", "picked": "choose", "selected": "choose", "decided": "choose", "adopted": "use"}
"""Past forms that state a value in force since then."""
_SUBJECTS = word_set("it he she they we i")
_LIGHT = word_set("got has have had was were made came took found did said left won")
_PLURAL = word_set("i we you they and don't doesn't do not longer never always")
"""Words after which the plain form of a verb is finite: "they run"."""
RENAMES = word_set("renamed rechristened rebranded retitled")
CHANGES = RENAMES | word_set(
    "moved relocated migrated switched changed converted transferred upgraded downgraded ported rewritten "
    "rewrote rescheduled postponed shifted pushed delayed extended raised increased lowered "
    "reduced decreased cut bumped rose fell grew went gone promoted transitioned brought updated "
    "shortened reassigned swapped dropped risen fallen grown jumped doubled tripled halved climbed slipped sank "
    "advanced adjusted amended revised expanded prolonged redirected returned reverted"
)
"""With "from A to B", or "to B"."""
TRAVELLED = word_set("went gone pushed jumped got returned")
"""Verbs of change that describe a journey if a place follows."""
PLACED = word_set("moved relocated transferred shifted")
REPLACES = word_set("replaced substituted swapped traded exchanged superseded replaces supersedes succeeded")
ENDS = word_set(
    "left quit sold dropped ditched abandoned cancelled canceled stopped ended discontinued "
    "retired gave given moved resigned unsubscribed deprecated got scrapped removed terminated "
    "closed died withdrawn axed"
)
FOR_GOOD = word_set(
    "retired resigned died discontinued deprecated withdrawn terminated abandoned ditched sold"
)
"""Verbs that end a person or thing for everybody."""
ENDS_WITH = {"gave": ("up",), "given": ("up",), "got": ("rid", "of"), "moved": ("out", "of"), "resigned": ("from",),
              "unsubscribed": ("from",)}  # fmt: skip
ONCE = frozenset(("today", "tonight", "yesterday", "tomorrow", "once", "this"))
_LASTING_FROM = frozenset(("from", "of", "since", "as", "at", "all"))
"""Words that make a following "today" or "once" lasting: "from today", "as of today", "at once"."""
_WEEKS = frozenset(("week", "weekend"))
ADDS = frozenset(("also", "additionally", "too"))


class Token(Struct, gc=False):
    """A word or punctuation mark with its position."""

    text: str
    low: str
    start: int
    end: int


class Complement(Struct, gc=False):
    """A complement of a verb: the object (without preposition), or a preposition with its words."""

    preposition: str
    tokens: list[Token] = field(default_factory=list)


@lru_cache(maxsize=_WORDS)
def family_of(form: str) -> str:
    """The family of a verb of state, given any of its forms; empty for other words."""
    if form in _STATES:
        return _STATES[form]
    if form == "has":
        return "have"
    if form[-1:] not in ("s", "g"):
        return ""
    for ending, put in (("ies", "y"), ("es", ""), ("es", "e"), ("s", ""), ("ing", ""), ("ing", "e")):
        if form.endswith(ending) and form[: -len(ending)] + put in _STATES:
            return _STATES[form[: -len(ending)] + put]
    if form.endswith("ing") and len(form) > 6 and form[-4] == form[-5] and form[:-4] in _STATES:
        return _STATES[form[:-4]]  # running
    return ""


DENYING = ("doesn't", "don't", "longer")
_FORMS = BE.keys() | CHANGES | REPLACES | ENDS | _CHOSEN.keys() | word_set("used has have get gets")


def is_listed_verb(low: str) -> bool:
    """Whether a word is a form of a verb in the tables."""
    return low in _FORMS or low in _STATES or (low[-1] in "sg" and bool(family_of(low)))


@lru_cache(maxsize=_WORDS)
def may_be_verb(low: str) -> bool:
    """Whether :func:`verb_of` may find this word as a verb, apart from verbs after a denial."""
    return is_listed_verb(low) or ends_like_verb(low)


def ends_like_verb(low: str) -> bool:
    """Whether a word has the ending of a verb in the present tense: "approves"."""
    return low[-1] == "s" and len(low) > 3 and low.isalpha()


def verb_of(tokens: Sequence[Token]) -> tuple[int, str]:
    """The position of the finite verb and its family or kind; (-1, "") if there is none."""
    found = _known_verb(tokens)
    if found[0] < 0:
        found = _unknown_verb(tokens)
        if found[0] < 0 and (place := from_to([one.low for one in tokens])) >= 0:
            return place, "change"
    return found


def is_past(low: str) -> bool:
    """Whether a word has the form of a past tense: "scaled", "took"."""
    return low.endswith("ed") or low in PASTS


def from_to(low: Sequence[str]) -> int:
    """The position of an unknown past verb before "from A to B" ("we scaled the queue from 4 to 12"); -1 if none."""
    start = low.index("from") if "from" in low else 0
    before = low[:start]
    if "to" not in low[start:] or "to" in before or not UNSURE.isdisjoint(before):
        return -1
    return next((number for number in range(1, start) if is_past(low[number])), -1)


def _known_verb(tokens: Sequence[Token]) -> tuple[int, str]:
    before = low = ""
    for number, one in enumerate(tokens):
        before, low = low, one.low
        if not may_be_verb(low) and before not in DENYING:
            continue
        if low in BE and low not in AUXILIARIES:
            after = next((other.low for other in tokens[number + 1 :] if other.low not in ADVERBS), "")
            if (after in CHANGES or after in REPLACES) and low != "'s" and not BE[low] and any(
                other.low in ("to", "from", "by", "with", "for") for other in tokens[number + 1 :]
            ):  # fmt: skip
                continue  # "is moved to": the participle counts
            return number, "be"
        if low == "used" and number + 2 < len(tokens) and tokens[number + 1].low == "to":
            return number, "used to"
        if low in CHANGES or low in REPLACES or low in ENDS:
            if low == "got" and not (number + 1 < len(tokens) and tokens[number + 1].low == "rid"):
                continue
            if before in DETERMINERS or before in POSSESSIVES:
                continue
            return number, "change"
        if low in ("has", "have", "get", "gets") and _perfect(tokens[number + 1 :]):
            if low in ("has", "have") and _is_been(tokens[number + 1 :]):
                return number, "been"
            continue
        if low in _CHOSEN and number and _names_choice(low, tokens[number + 1 :]):
            return number, _CHOSEN[low]
        if low.endswith("ing") and before == "been" and family_of(low):
            return number, family_of(low)
        if low.endswith(("ing", "ed")) and low not in _STATES:
            continue
        family = family_of(low)
        if family and number + 1 < len(tokens) and tokens[number + 1].low in ("is", "are", "was", "were"):
            continue  # a noun: "expense reports are due"
        if not family and _may_be_a_verb(tokens, number):
            return number, f"{OTHER}{low}"
        if not family or not number or before in _BEFORE_NOUNS:
            continue
        third = (
            (low != "has" and low.endswith("s") and low[:-1] in _STATES) or low == "has" or low.endswith("es")
        )
        plural = (
            any(other.low in _PLURAL for other in tokens[:number])
            or before.endswith("s")
            or before in ADVERBS
        )
        if (third and not before.endswith("'s")) or (not third and plural):
            return number, family
    return -1, ""


def _names_choice(verb: str, rest: Sequence[Token]) -> bool:
    """Whether a verb of choice has a thing as object: "decided PostgreSQL", not "decided to go" or "picked three"."""
    named = rest and rest[0].text[0].isupper() and UNSURE.isdisjoint([one.low for one in rest])
    return (bool(named) or verb != "decided") and kind_of(rest[:2]) != "number"


def _may_be_a_verb(tokens: Sequence[Token], number: int) -> bool:
    """Whether a word that is in no table is a verb: "Vera spends …", "she bakes …", "Vera doesn't spend …"."""
    low, before = tokens[number].low, tokens[number - 1] if number else None
    if before is None or not low.isalpha() or len(low) < 4 or low in ADVERBS or low in _PLURAL:
        return False
    if number + 1 >= len(tokens) or tokens[number].text[0].isupper():
        return False
    if before.low in DENYING:
        return low not in PREPOSITIONS
    named = number == 1 and before.text[:1].isupper() and before.low not in _OWNERS
    after = tokens[number + 1]
    ahead = after.low in _BEFORE_OBJECTS or after.text[:1].isupper() or after.text[0].isdigit()
    if number > 1 and tokens[0].low in _OWNERS:
        named, ahead = True, after.low in _OWNERS
    return named and ahead and low[-1] == "s" and low[-2] not in "su'" and low not in _CHOSEN


def _unknown_verb(tokens: Sequence[Token]) -> tuple[int, str]:
    """Find a verb by position: "the bakery delivers on", "the keys hang in", "I wake up at", "Oskar approves"."""
    for number, one in enumerate(tokens[1:_FIRST_WORDS], 1):
        low, before = one.low, tokens[number - 1]
        if (
            number + 1 >= len(tokens)
            or not low.isalpha()
            or len(low) < 3
            or low in _NO_VERB
            or one.text[0].isupper()
        ):
            continue
        if not before.low[-1:].isalnum() or low.endswith(("ing", "ed", "ly")) or low in PASTS:
            continue
        if before.low in _NO_SUBJECT:
            continue
        after = tokens[number + 1]
        named = number == 1 and before.text[:1].isupper() and not before.low.endswith("s")
        spoken = before.low in _SUBJECTS or before.low in ("not", "longer", "always", "never", "don't")
        ahead = (
            after.low in _BEFORE_OBJECTS or after.low in NUMBERS or after.low in _PARTICLES or after.low in NEWS
            or after.text[:1].isupper() or after.text[0].isdigit()
        )  # fmt: skip
        short = number == 2 and tokens[0].low in _OWNERS and low[-1] == "s"
        if not (ahead or ((named or short or before.low in _SUBJECTS) and after.low.isalpha())):
            continue
        third = low[-1] == "s" and low[-2] not in "su'"
        plural = before.low[-1] == "s" and before.low[-2:-1] not in ("s", "u", "'", "’", "")
        if (third and (named or not plural) and not (spoken and before.low not in ("he", "she", "it"))) or (
            not third and low[-1] != "s" and (plural or (spoken and before.low not in ("he", "she", "it")))
        ):
            return number, f"{OTHER}{low}"
    return -1, ""


def _is_been(tokens: Sequence[Token]) -> bool:
    """Whether "have" is followed by "been" and a time or place: "have been at 8:00 since", not "have been to Rome"."""
    after = [one.low for one in tokens if one.low not in ADVERBS and one.low != "not"][:2]
    return (
        len(after) > 1
        and after[0] == "been"
        and (after[1] in PREPOSITIONS - {"to"} or after[1][:1].isdigit())
    )


def _perfect(tokens: Sequence[Token]) -> bool:
    """Whether "has" is followed by a participle."""
    after = next(
        (one.low for one in tokens if one.low not in ADVERBS and one.low not in ("not", "just", "since")), ""
    )
    return (
        after in CHANGES | REPLACES | ENDS
        or after in ("been", "had")
        or after in _CHOSEN
        or after.endswith("ed")
        or after in PASTS
    )


_JOINS = frozenset((";", "–", "—", ",", ":", "and", "but", "so"))


def clauses_of(tokens: list[Token]) -> Iterator[list[Token]]:
    """Split a sentence at semicolons and dashes, and at "and", "but" or a comma before another finite verb."""
    begin = 0
    seen = False
    for number, one in enumerate(() if _JOINS.isdisjoint([one.low for one in tokens]) else tokens):
        cut = one.text in ";–—" or (one.text in ",:" and _pronoun_ahead(tokens[number + 1 : number + 5]))
        if not cut and number > begin and (one.low in ("and", "but", "so") or one.text in ",:"):
            clause = tokens[begin:number]
            bare = begins_with_verb(clause) or begins_with_end(clause)
            if not seen:
                seen = bare or verb_of(clause)[0] >= 0 or bool(subject_of(clause))
            ahead = tokens[number + 1 : number + 8]
            place, _ = _known_verb(ahead)
            if (
                place < 0
                and (one.low in ("and", "but") or (bare and one.text == ","))
                and ahead
                and (family_of(ahead[0].low) or ahead[0].low in ENDS | REPLACES or begins_with_verb(ahead))
            ):
                place = 0
            # A verb without a subject after a comma belongs to the clause before it: "not", "which", "who".
            cut = seen and place >= 0 and not any(
                other.low in ("not", "no", "which", "who", "instead", ",") for other in ahead[:place]
            )  # fmt: skip
            if cut and one.text in "," and place > (6 if ahead[0].low in _OWNERS else 4):
                cut = False
        if cut:
            yield tokens[begin:number]
            begin, seen = number + 1, False
    yield tokens[begin:]


def begins_with_verb(tokens: Sequence[Token]) -> bool:
    """Whether a clause begins with a verb: "… and boards with the Strands"."""
    first = tokens[0].low if len(tokens) > 1 else ""
    if first.endswith("s") and family_of(first):
        return True
    ahead = first and (tokens[1].low in _BEFORE_OBJECTS or tokens[1].text[:1].isupper())
    return bool(ahead) and first.isalpha() and first[-1] == "s" and first[-2:-1] not in ("s", "u", "i", "")


def begins_with_end(tokens: Sequence[Token]) -> bool:
    """Whether a clause without subject and verb says what has ended: "no longer at the post office"."""
    lows = [one.low for one in tokens[:3]]
    return lows[:2] == ["no", "longer"] and lows[-1] in PREPOSITIONS


def _pronoun_ahead(ahead: Sequence[Token]) -> bool:
    """Whether a clause begins with a pronoun and a verb: "it is due", "now we order"."""
    ahead = ahead[1:] if ahead and ahead[0].low in NEWS else ahead
    return len(ahead) > 1 and ahead[0].low in _SUBJECTS and verb_of(ahead)[0] in (1, 2)


def subject_of(tokens: Sequence[Token]) -> Sequence[Token]:
    """The words before the verb of a clause if that verb is in no table: "Vera closed the account"."""
    for number, one in enumerate(tokens[:6]):
        if number and one.text[0].islower() and (one.low in _LIGHT or one.low.endswith("ed")):
            return tokens[:number]
    return ()


_SPLITTING = _CUT | PREPOSITIONS | ADVERBS | frozenset(";()!?–—.:,")
"""Words and marks that belong to no complement."""


def parts_of(tokens: Sequence[Token]) -> list[Complement]:
    """The complements of a verb, split at prepositions, up to a conjunction or punctuation mark."""
    parts = [Complement("")]
    for number, one in enumerate(tokens):
        if one.low not in _SPLITTING:
            parts[-1].tokens.append(one)
            continue
        if one.low in _CUT or one.text in ";()!?–—" or (one.text == "," and number):
            if (
                one.text == ","
                and number + 1 < len(tokens)
                and tokens[number + 1].low in ("from", "at", "on", "in")
            ):
                continue
            if one.low == "and" and number + 1 < len(tokens) and tokens[number + 1].low not in FIRST | THIRD:
                parts[-1].tokens.append(one)
                continue
            break
        if one.text in ".:,":
            continue
        if one.low in PREPOSITIONS:
            parts.append(Complement(one.low))
    return [part for part in parts if part.tokens]


def take_former(tokens: list[Token]) -> tuple[list[Token], list[Complement], str]:
    """Split "instead of A", "no longer A", ", not A", "not A but B" off words after a verb: the rest, A and more."""
    low = [one.low for one in tokens]
    for number, word in enumerate(low):
        after = low[number + 1] if number + 1 < len(low) else ""
        if word in ("up", "down") and after == "from" and number:
            return tokens[:number], parts_of(without_news(tokens[number + 2 :])[0]), f"{word} from"
        if (word, after) in (("instead", "of"), ("rather", "than"), ("no", "longer")):
            cue = f"{word} {after}"
            rest = tokens[number + 2 :]
            if number == 0 and cue == "no longer":
                former, value = _until_but(rest)
                return value, parts_of(without_news(former)[0]), cue
            return tokens[:number], parts_of(without_news(_trimmed(rest))[0]), cue
        if word == "not" and (number == 0 or low[number - 1] in (",", "and") or "but" in low[number:]):
            if number == 0:
                former, value = _until_but(tokens[1:])
                if value:
                    return value, parts_of(without_news(former)[0]), "not … but"
                break
            return tokens[:number], parts_of(without_news(_trimmed(tokens[number + 1 :]))[0]), "not"
    return tokens, [], ""


_BARE = word_set("house home flat jobs schools banks teams doctors desks offices places employers")


def token_texts(text: str) -> list[str]:
    """Split a sentence into words and punctuation marks."""
    found = plain_words(text) if len(text) <= LONGEST else ()
    return [*found, *text[len(text.rstrip(".!?")) :]] if found else _TOKEN.findall(text)


def tokens_of(text: str, found: Sequence[str] | None = None) -> list[Token]:
    """The tokens of a sentence with their positions; ``found``: their texts, if already known."""
    found = token_texts(text) if found is None else found
    end = 0
    # Searching for each text is faster than match objects
    ends = [end := text.index(word, end) + len(word) for word in found]
    starts = map(sub, ends, map(len, found))
    plain = [word.replace("’", "'") for word in found] if "’" in text else found
    return list(map(Token, found, map(str.lower, plain), starts, ends))


def of_one_time(tokens: list[Token]) -> bool:
    """Whether a clause is limited to a single day or week: "today we eat at seven", "at six this week"."""
    low = [one.low for one in tokens]
    return any(
        one in ONCE and before not in _LASTING_FROM and (one != "this" or after in _WEEKS)
        for before, one, after in zip(["", *low], low, [*low[1:], ""], strict=False)
    )


def adds(tokens: list[Token]) -> bool:
    """Whether a clause adds a value: "also", or "too" at its end."""
    return any(
        one.low in ("also", "additionally")
        or (one.low == "too" and (number + 1 == len(tokens) or not tokens[number + 1].low.isalpha()))
        for number, one in enumerate(tokens)
    )


def no_more(tokens: list[Token]) -> int:
    """Number of leading words that mark the rest as ended: "no more tea", "there will be no picnic"; 0 if none."""
    low = [one.low for one in tokens[:4]]
    if low[:2] == ["no", "more"]:
        return 2
    if low == ["there", "will", "be", "no"]:
        return 4
    return (
        1 if low[:1] == ["no"] and any(one.low in ("anymore", "longer", "more") for one in tokens[-3:]) else 0
    )


def will_not_be(tokens: list[Token]) -> int:
    """The position of "won't take place" or "will not happen"; 0 if absent."""
    low = [one.low for one in tokens]
    for number in range(1, len(low)):
        if low[number] in ("won't", "not") and (
            low[number + 1 : number + 3] == ["take", "place"] or low[number + 1 :][:1] == ["happen"]
        ):
            return number
    return 0


def is_compound(tokens: Sequence[Token], number: int) -> bool:
    """Whether a word such as "plan" is the second noun of a compound: "the phone plan"."""
    if tokens[number].low == "planning" and number:
        return tokens[number - 1].low not in FIRST | THIRD | AUXILIARIES | BE.keys()
    return (
        number > 1 and tokens[number].low in ("plan", "plans") and tokens[0].low in DETERMINERS | POSSESSIVES
    )


def is_bare(tokens: Sequence[Token]) -> bool:
    """Whether an object is a single noun without an article: "moved house", "changed jobs"."""
    return len(tokens) == 1 and tokens[0].text.islower() and tokens[0].low in _BARE


def _trimmed(tokens: list[Token]) -> list[Token]:
    return tokens[1:] if tokens and tokens[0].text == "," else tokens


def _until_but(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    for number, one in enumerate(tokens):
        if one.low == "but":
            return tokens[:number], tokens[number + 1 :]
    return tokens, []


def without_news(tokens: Sequence[Token]) -> tuple[list[Token], str]:
    """The words without markers of the present ("now", "from now on"), and the removed marker of a change, if any."""
    news = ""
    if _NEWS_FROM.isdisjoint([one.low for one in tokens]):
        return list(tokens), news
    kept: list[Token] = []
    number = 0
    while number < len(tokens):
        one = tokens[number]
        if one.low in _PHRASES_FROM:
            here = tuple(other.low for other in tokens[number : number + 3])
            phrase = next((some for some in _PHRASES_FROM[one.low] if here[: len(some)] == some), None)
            if phrase is not None:
                if phrase in _NEWS_PHRASES:
                    news = " ".join(phrase)
                number += len(phrase)
                continue
        if one.low in NEWS:
            news = news or one.low
        else:
            kept.append(one)
        number += 1
    return kept, news


def after_phrase(tokens: Sequence[Token], phrase: tuple[str, ...]) -> int:
    """The position after a phrase; 0 if it is absent."""
    low = [one.low for one in tokens]
    if phrase[0] in low:
        for number in range(len(low) - len(phrase) + 1):
            if tuple(low[number : number + len(phrase)]) == phrase:
                return number + len(phrase)
    return 0


def denial_in(subject: Sequence[Token]) -> tuple[bool, str]:
    """Whether the words before a verb negate it, and "no longer" if they contain it."""
    low = [one.low for one in subject]
    if "longer" in low and "no" in low:
        return True, "no longer"
    return any(word in ("not", "never", "don't", "doesn't", "cannot", "can't") for word in low), ""


def is_participle(word: str) -> bool:
    """Whether a word after "is" belongs to the verb: a participle or one of a few adjectives."""
    return word.endswith(("ed", "en", "wn")) or word in PASTS or word in CHANGES or word in (
        "due", "held", "set", "kept", "allergic", "responsible", "open", "closed", "available", "built", "made", "good",
        "bound", "sent", "run", "paid", "found", "put", "stuck", "free", "busy", "away", "back",
    )  # fmt: skip


def kind_of(tokens: Sequence[Token]) -> str:
    """The kind of a value: "time", "date", "day", "number", "name" or "word"."""
    kinds = {_kind_of_word(one.low) for one in tokens}
    for kind in _KINDS:
        if kind in kinds:
            return kind
    if any(one.text[:1].isupper() and one.start > 0 for one in tokens) or (
        tokens and all(one.text[:1].isupper() for one in tokens)
    ):
        return "name"
    return "word"


_KINDS = ("time", "date", "day", "number", "name")
"""Kinds that a single word determines, in order of precedence."""


@lru_cache(maxsize=_WORDS)
def _kind_of_word(low: str) -> str:
    if _CLOCK.match(low):
        return "time"
    if low in MONTHS or _ISO_DATE.match(low):
        return "date"
    if low.removesuffix("s") in DAYS:
        return "day"
    if low[:1].isdigit() or low in NUMBERS:
        return "number"
    return "name" if _NAMED.search(low) else ""


def labels_of(tokens: Sequence[Token], stems: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Numbers and names that follow a noun, each with the noun's stem: two in "process 1 noted that item no. 3"."""
    found: list[tuple[str, str]] = []
    noun = ""
    for one in tokens:
        low = one.low
        if noun and low in _NUMBER_SIGNS:
            continue
        if noun and (one.text[0].isdigit() or low in NUMBERS or one.text[0].isupper()):
            found.append((noun, stems[low]))
        elif not low.isalpha() or low in _NO_NOUN:
            noun = ""
        else:
            noun = stems[low]
    return tuple(found)


def complement_after(parts: Sequence[Complement], preposition: str) -> Complement | None:
    """The complement of a preposition; for "the university in A" and "the one in B", the place."""
    for number, one in enumerate(parts):
        if one.preposition == preposition:
            after = parts[number + 1] if number + 1 < len(parts) else None
            both = any("one" in (word.low for word in part.tokens) for part in parts)
            if both and after is not None and after.preposition in ("in", "at", "on", "near"):
                return Complement(preposition, after.tokens)
            return one
    return None

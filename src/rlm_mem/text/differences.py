"""Finds statements that contradict or replace each other, by rules without a model (docs/spec/links.md, Proposals)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import structs

from rlm_mem.record import FrozenRecord
from rlm_mem.text.clauses import DAYS, FOR_GOOD, OTHER, PLACED, RENAMES, REPLACES
from rlm_mem.text.factuality import is_in_force, is_temporary
from rlm_mem.text.patterns import late, word_set
from rlm_mem.text.statement import ME, UNKNOWN, Stated

_UNSURE = 0.6
_UNCLEAR = 0.7
"""Most confidence in a change if its heading may name somebody else: "# Journal" and "# Tom" look alike."""
_NO_LONGER = frozenset(("no longer", "any more", "anymore", "any longer"))
_OWNER = late(r"([^\W\d_]{1,40})['’]s\b")
NOUN_OF = {
    "deadlin": "due", "due": "due", "price": "cost", "fee": "cost", "cost": "cost", "rent": "pay", "address": "live",
    "home": "live", "job": "work", "employ": "work", "salari": "earn", "name": "call", "weight": "weigh",
    "date": "due", "time": "start", "start": "start", "end": "end", "host": "host",
}  # fmt: skip
"""Stems of nouns that name an attribute: "the deadline of X moved" and "X is due on"."""
_BESIDE = frozenset(("on", "in", "at", "with", "from", "about"))
_ONE_VALUE = word_set(
    "live work cost weigh start end open close meet report drive run listen pay earn leave arrive lead "
    "host due call name  base locat plan schedul held set freez frozen empti written write engag marri "
    "choos bank sit belong change expir read go deploy"
)
"""Attributes with one value at a time."""
_ONE_WORD = word_set(
    "color colour status state mode size shape name titl type kind languag format level brand version "
    "theme currenc plan  polici hobbi dish drink food song band sport pet mascot nicknam role rank grade "
    "default password passphras code pin login usernam topic motto answer"
)
"""Stems of nouns for attributes with one value at a time, regardless of the wording."""
_LOOSE = word_set("like hate speak teach play have eat drink help know watch cook sing share")
"""Attributes that may have many values, so that another value contradicts none."""
_NAMES = frozenset(("call", "name"))
_RENAMED = frozenset(f"{verb} to" for verb in RENAMES)
_ROLES = word_set("lead host teach run keep sing write play drive")
"""Attributes of a person that another person may take over."""
_ARRANGED = word_set("be plan schedul held set book start meet take begin arrang due happen")
"""Attributes of events."""
_OF_KIND = {
    "time": word_set("schedul time start begin slot hour date"), "day": word_set("schedul date day time"),
    "date": word_set("schedul date day deadlin time"),
    "number": word_set("price cost fee rate limit number count amount size"),
}  # fmt: skip
"""Nouns that name a kind of value: "the schedule of the job" and "the job runs at 2:00"."""
_LASTING = word_set("like hate write teach help")
"""Attributes whose values remain in force when something else changes."""
_AMOUNTS = word_set("cost pay earn weigh")
_NUMBERED = late(r"(?:(?:an?|the|our|my) )?([^\W\d_]\S*)(?: [^\W\d_]\S*)? v?\d")
"""A name before its number: "PostgreSQL 16", "an iPhone 15"."""
_CALENDAR = frozenset(one for day in DAYS for one in (day, f"{day}s")) | word_set(
    "summer winter weekend holiday"
)
_PLACES = word_set("live base locat meet sit host held run stand sleep keep store")


class Conflict(FrozenRecord, frozen=True):
    """A later and an earlier statement that cannot both be in force.

    Attributes:
        kind: ``replace`` or ``contradict``.
        said: whether the later sentence itself states that the earlier value has ended.
    """

    kind: str
    confidence: float
    said: bool
    reason: str


def difference(newer: Stated, older: Stated, *, restated: bool = False) -> Conflict | None:
    """Compare a later statement with an earlier one; None if both may be in force.

    ``said`` is true if the later one itself states the change ("from A to B", "no longer A", "now B"); other results
    may be wrong.

    Args:
        restated: whether another statement of the later text repeats the earlier one.
    """
    if not (newer.sure and older.standing) or newer.text == older.text or UNKNOWN in newer.topic:
        return None
    if newer.labels and older.labels and _labelled_apart(newer.labels, older.labels):
        return None
    if newer.over:
        return _ended(newer, older)
    if (found := _swapped(newer, older)) is not None:
        return found
    if newer.former or newer.gone:
        if (found := _named(newer, older)) is not None:
            return found
        if newer.news in REPLACES:
            return None  # the later statement names the replaced value, and the earlier one has another value
    by_noun = _named_by_noun(newer, older) or _named_by_noun(older, newer) or _named_by_kind(newer, older)
    if not newer.value or not (by_noun or _same_topic(newer, older)):
        return None
    if newer.context and older.context and newer.context != older.context:
        apart = newer.context ^ older.context  # "from 7 to 20": the numbers of a range
        if newer.kind != "number" or apart != _numbers(apart):
            return None
    if newer.denied != older.denied or newer.always != older.always:
        return _denial(newer, older)
    if newer.denied or not (by_noun or _same_attribute(newer, older)):
        return None
    return _other_value(newer, older, restated=restated)


def _labelled_apart(newer: Sequence[tuple[str, str]], older: Sequence[tuple[str, str]]) -> bool:
    """Whether two topics have different labels of one kind: "item 3" and "item 1".

    A label that only one of them has does not distinguish them: "the valve of pump 2" and "pump 2 on line 4".
    """
    for noun in {noun for noun, _ in newer} & {noun for noun, _ in older}:
        one = [label for sort, label in newer if sort == noun]
        other = [label for sort, label in older if sort == noun]
        if len(one) > len(other):
            one, other = other, one
        if [label for label in other if label in one] != one:
            return True
    return False


def differences(
    newer: Sequence[Stated], older: Sequence[Stated]
) -> Iterator[tuple[Conflict, Stated, Stated]]:
    """All conflicts between the statements of two texts, each with the later and the earlier statement."""
    for one in older:
        if not one.standing or one.unclear:
            continue
        restated = any(_restates(new, one) for new in newer if one.value <= new.value)
        for new in newer:
            found = difference(new, one, restated=restated)
            if found is not None and found.said and not _lasts(new, one):
                found = structs.replace(found, said=False, confidence=_UNSURE)
            elif found is not None and new.unclear:
                found = structs.replace(found, confidence=min(found.confidence, _UNCLEAR))
            if found is not None and (found.said or not restated):
                yield found, new, one


def _lasts(newer: Stated, older: Stated) -> bool:
    """Whether the later statement is permanent and ends the whole earlier one.

    Not "no longer at work", nor "while the road is closed".
    """
    if is_temporary(newer.text, older.text) or not is_in_force(newer.text, older.text):
        return False
    narrowed = newer.context - older.context - older.topic - older.value - newer.former - newer.topic
    return newer.news not in _NO_LONGER or bool(newer.value) or not narrowed


def surest(
    newer: Sequence[Stated], older: Sequence[Stated], kind: str | None = None
) -> tuple[Conflict, Stated, Stated] | None:
    """The conflict with the highest confidence (of one kind), those with ``said`` first; None if there is none."""
    found = [one for one in differences(newer, older) if kind is None or one[0].kind == kind]
    return max(found, key=lambda one: (one[0].said, one[0].confidence), default=None)


def _named(newer: Stated, older: Stated) -> Conflict | None:
    """A conflict if the later statement names a former value that the earlier one states."""
    former = newer.former or newer.gone
    if older.denied or not former or not older.value:
        return None
    succeeds = _succeeds(newer, older)
    if not (succeeds or former <= older.value or older.value <= former) or _one_of_many(newer, older):
        return None
    if succeeds:
        return Conflict(
            "replace", 0.95, True, f"says that “{newer.shown}” does it instead of “{newer.shown_former}”"
        )
    whole = older.value <= former <= older.value | older.topic
    if len(older.value - former) > 3 or _numbers(former) - older.value:
        return None
    if newer.attribute != "change" and not _alike(newer, older):
        return None
    if older.attribute in _LASTING and not older.preposition and newer.attribute == "change":
        return None
    new_topic, old_topic = newer.topic - {ME}, older.topic - {ME}
    full_new, full_old = new_topic | newer.context, old_topic | older.context | older.value
    strong = False
    if new_topic and old_topic:
        fits = new_topic <= full_old | {_verb(older)} or (
            old_topic <= full_new and _head_fits(newer, older, full_old)
        )
        if not fits or _owned(newer, older):
            return None
        added = new_topic - full_old - {newer.head, _verb(older)}
        if added and ME in older.topic and ME not in newer.topic:
            return None  # it belongs to somebody else
        strong = not added and _contexts_meet(newer, older, new_topic, old_topic)
        strong = strong and (
            new_topic == old_topic or older.head in newer.named | {""} or older.kind == "name"
        )
    elif not new_topic and not old_topic:
        if newer.topic != older.topic:
            return None
        strong = _contexts_meet(newer, older, new_topic, old_topic)
    elif old_topic:
        if ME not in newer.topic:
            return None
        alone = ME in older.topic and len(old_topic) == 1 and former == older.value and older.kind == "name"
        strong = bool(newer.context & full_old) or (alone and not newer.context)
        if former == older.value and not newer.context and any(not stem.isalpha() for stem in former):
            strong = strong or newer.news in _RENAMED  # the name of a thing in a program
        strong = strong or (whole and old_topic <= former) or (
            old_topic <= newer.named and _contexts_meet(newer, older, new_topic, old_topic)
        )  # fmt: skip
    else:
        strong = ME in older.topic and new_topic <= full_old
        if not strong and not new_topic & full_old:
            return None
    reason = f"says that “{newer.shown_former or older.shown}” does not hold any more"
    if newer.shown and newer.value:
        reason += f": “{newer.shown}” instead"
    return Conflict("replace", 0.95 if strong else 0.6, strong, reason)


def _succeeds(newer: Stated, older: Stated) -> bool:
    """Whether a person has taken over what the earlier statement says of another ("Ben took over X from Ana")."""
    about = newer.topic - {ME}
    return (
        newer.attribute == "change"
        and (older.attribute in _ROLES or older.attribute.startswith(OTHER))
        and newer.former == older.topic
        and bool(about)
        and about <= older.value | older.context
    )


def _one_of_many(newer: Stated, older: Stated) -> bool:
    """Whether one thing of a kind has ended and the earlier statement is about the kind: "a stamp" and "stamps"."""
    sort, one = older.shown.lower().split(), newer.shown_former.lower().split()
    return bool(sort and one) and sort[-1].endswith("s") and one[0] in ("a", "an", "the", "one") and (
        sort[0] not in ("the", "my", "our", "his", "her", "their") and sort[-1].removesuffix("s") == one[-1]
    )  # fmt: skip


def _ended(newer: Stated, older: Stated) -> Conflict | None:
    """A conflict if the later statement ends a thing whose time or place the earlier one states.

    Or the earlier one has the thing as a value: "our host is Acme", "Acme has retired". It may be a different Acme.
    """
    if newer.topic == older.value and older.kind == "name" and not older.denied:
        return Conflict("replace", _UNSURE, False, f"says “{newer.news}” of “{older.shown}”")
    dated = older.kind in ("time", "day", "date") or _verb(older) in _ARRANGED
    if not dated or newer.news in FOR_GOOD or not _same_topic(newer, older) or newer.topic == {ME}:
        return None
    return Conflict("replace", 0.92, True, f"says “{newer.news}” of what was for “{older.shown}”")


def _swapped(newer: Stated, older: Stated) -> Conflict | None:
    """A conflict if the later statement assigns a role, office or task to another person than the earlier one.

    "Tomas stepped down, Ines is treasurer now", "Ana takes the minutes", "the minutes are taken by Ben now".
    """
    if newer.denied or older.denied or not (newer.value and older.value):
        return None
    # "Bo is captain now, not Ari" and "the captain is Ari"
    if (
        newer.attribute == older.attribute == "be"
        and bool(newer.former)
        and newer.former == older.value
        and newer.value == older.topic - {ME}
    ):
        return Conflict("replace", 0.92, True, f"says that it is not “{newer.shown_former}” any more")
    if newer.attribute in _NAMES and newer.news and older.value and older.value <= newer.topic:
        mine = older.topic - {ME}
        if (older.value == newer.topic and _verb(older) in _NAMES) or (
            mine and mine <= newer.topic - older.value
        ):
            return Conflict("replace", 0.92, True, f"says that it is called “{newer.shown}” now")
    if newer.news in _RENAMED and _verb(older) in _NAMES and newer.topic == older.value:
        said = not newer.context
        return Conflict(
            "replace", 0.92 if said else _UNSURE, said, f"says that it was {newer.news} “{newer.shown}”"
        )
    if newer.preposition == "by" and _verb(newer) == _verb(older) and newer.topic - {ME} == older.value:
        same = newer.value.isdisjoint(older.topic)
    else:
        same = (
            newer.value == older.value
            and bool(older.topic)
            and older.topic in (newer.former, newer.gone)
            and _verb(newer) == _verb(older)
            and newer.topic.isdisjoint(older.topic)
        )
    if not same or not (newer.news or (older.topic and older.topic <= newer.named)):
        return None
    return Conflict("replace", 0.92, True, "says that somebody else does what the earlier one says")


def _verb(one: Stated) -> str:
    return one.attribute.removeprefix(OTHER)


def _owned(newer: Stated, older: Stated) -> bool:
    """Whether the earlier statement is about a thing of somebody whom the later one does not name."""
    left = older.topic - newer.topic - newer.context - {ME}
    if newer.news.split(" ")[0] in PLACED and older.head in left:
        return True  # "Ana moved to Rome" is not about Ana's mother
    owners = [match[1].lower() for match in _OWNER.finditer(older.text)]
    return any(owner.startswith(stem) for owner in owners for stem in left)


def _contexts_meet(
    newer: Stated, older: Stated, new_topic: frozenset[str], old_topic: frozenset[str]
) -> bool:
    one, other = newer.context - old_topic, older.context - new_topic
    return not one or not other or bool(one & other)


def _head_fits(newer: Stated, older: Stated, full_old: frozenset[str]) -> bool:
    """Whether the longer topic of the newer statement refers to the older topic: "the deadline of X", "X is due"."""
    if newer.head in full_old or NOUN_OF.get(newer.head, "?") == older.attribute:
        return True
    return newer.head in _OF_KIND.get(older.kind, ()) and newer.kind == older.kind


def _alike(newer: Stated, older: Stated) -> bool:
    """Whether the attributes are equal, or one of them is just "be"."""
    if newer.attribute == older.attribute:
        return True
    return "be" in (newer.attribute, older.attribute)


def _same_topic(newer: Stated, older: Stated) -> bool:
    if newer.topic == older.topic:
        return True
    one, other = newer.topic - {ME}, older.topic - {ME}
    return bool(one) and one == other


def _named_by_noun(one: Stated, other: Stated) -> bool:
    """Whether the topic of one statement names the attribute of the other: "the deadline of X moved", "X is due"."""
    if NOUN_OF.get(one.head, "?") != _verb(other) or one.attribute not in ("be", "change"):
        return False
    if other.kind in ("name", "word") and other.preposition not in ("", "in", "at", "for"):
        return False  # "Mia lives with Tom" does not give her address
    words = one.text.lower().split()
    if any(word.startswith(one.head[:-1]) and after in _BESIDE for word, after in pairwise(words)):
        return False  # "the weight on the boat" is not that of the boat
    return one.topic - {ME} == (other.topic - {ME}) | {one.head} and one.head not in other.topic


def _named_by_kind(newer: Stated, older: Stated) -> bool:
    """Whether a change names the day of the other topic: "the bin day changed to Friday", "bins are collected on"."""
    return (
        newer.attribute == "change"
        and newer.kind == older.kind
        and newer.kind in ("day", "date")
        and newer.head in _OF_KIND[newer.kind] - older.topic
        and newer.topic - {ME} == (older.topic - {ME}) | {newer.head}
    )


def _same_attribute(newer: Stated, older: Stated) -> bool:
    if newer.attribute == "change":
        if older.attribute in _LOOSE:
            return newer.kind == older.kind == "number" and bool(newer.value & older.value)
        return not older.attribute.startswith(OTHER)
    when = not newer.preposition and newer.kind == older.kind and newer.kind in ("time", "day", "date")
    return _verb(newer) == _verb(older) and (when or newer.preposition == older.preposition)


def _other_value(newer: Stated, older: Stated, *, restated: bool) -> Conflict | None:
    """A conflict if the newer statement has another value for the same attribute of the same topic."""
    named = (
        newer.attribute == "change"
        and {newer.kind, older.kind} == {"name", "number"}
        and not older.preposition
    )
    if newer.value <= older.value or older.value <= newer.value or (newer.kind != older.kind and not named):
        return None
    if (
        newer.attribute == "change"
        and older.kind == "word"
        and older.preposition
        and newer.news.split()[0] not in PLACED
    ):
        return None  # "tests run in parallel", "the tests were converted to pytest"
    if newer.number is not None and older.number is not None and newer.number <= older.number:
        return None
    if newer.added and newer.kind in ("word", "name"):
        return None  # "it also needs a belt" ends nothing
    attribute = older.attribute.split(":")[0]
    # "The guide moved to Rome" does not name a new guide, but "the guide changed to Ana" does.
    people = newer.attribute == "change" and newer.preposition == "to" and newer.news != "changed to"
    people = people and older.kind == "name"
    people = people and not older.shown.islower() and not named
    if people and attribute not in _PLACES and not (attribute == "be" and older.preposition in ("in", "at")):
        return None
    shared = newer.value & older.value
    if newer.attribute == "change" and newer.topic == {ME} and newer.kind == "number" and not shared:
        return None  # "we are down to 21 positions" is not about euros
    counted = bool(shared) and newer.kind == older.kind == "number"
    echoed = not restated and _both_named(newer, older)
    single = (
        attribute in _ONE_VALUE
        or bool(shared and newer.kind != "word")
        or (attribute == "be" and (newer.kind != "word" or bool(shared) or _comparable(newer, older)))
        or (attribute in ("prefer", "take", "use") and bool(shared))
    )
    said = bool(newer.news) and not newer.former and not newer.instead
    if attribute in _LOOSE:
        single = counted
    elif older.attribute.startswith(OTHER) or not single:
        # A statement with an unknown verb is only compared with a place, time or agent, or if both values are named.
        placed = newer.preposition not in ("", "to", "for", "as") or (
            newer.preposition and newer.kind != "word"
        )
        single = (said and bool(placed)) or echoed
    if not single:
        return None
    reason = f"“{older.shown}”, then “{newer.shown}”"
    if _other_thing(newer, older):
        # "It runs on Python 3.13 now" ends "it runs on MySQL 8" only if both are answers to one question.
        return Conflict("replace", _UNSURE, False, reason) if said else None
    if said and not _narrower(newer, older):
        return Conflict("replace", 0.92, True, f"says “{newer.news}”: {reason}")
    if echoed and not newer.former and not _narrower(newer, older):
        return Conflict("replace", 0.92, True, f"names both: {reason}")
    if _narrower(newer, older) and not said:
        return None  # "at nine on Fridays" leaves the other days as they are
    return Conflict("replace", 0.7 if newer.number is not None else 0.6, False, reason)


def _other_thing(newer: Stated, older: Stated) -> bool:
    """Whether two numbers are of things with different names: "Python 3.13" and "PostgreSQL 16", "one CX32".

    A version is of its product. A topic that names the kind of its value has one value, whatever its name: "the
    database is MySQL 8"; and so have a place ("in hall 3") and an amount.
    """
    if not (newer.kind == older.kind == "number") or older.preposition in ("in", "at", "from"):
        return False
    if _verb(older) in _AMOUNTS or _OF_KIND["number"] & older.topic:
        return False
    things = [{stem for stem in one.value if not stem[:1].isdigit()} for one in (newer, older)]
    if not all(things) or things[0] & things[1]:
        return False
    named = [match for one in (newer, older) if (match := _NUMBERED.match(one.shown))]
    if len(named) == len(things):
        return _verb(older) != "be" or bool(older.preposition)
    return any(match[1][0].isupper() for match in named)


def _restates(newer: Stated, older: Stated) -> bool:
    """Whether a later statement repeats the earlier one: "built in Rust, with bindings in Python"."""
    return (
        bool(older.value)
        and older.value <= newer.value
        and older.topic <= newer.topic | newer.context
        and not (newer.denied or newer.former or newer.gone or newer.over or newer.news)
    )


def _both_named(newer: Stated, older: Stated) -> bool:
    """Whether the later text also names the earlier value: "Webpack has gone, it is built with Vite".

    Plain words count only if they are of one kind: "wet food" and "dry food".
    """
    left = older.value - newer.value
    if not left or not left <= newer.named or newer.attribute == "change" or newer.added:
        return False
    return (newer.kind != "word" and newer.topic != {ME}) or bool(newer.value & older.value)


def _narrower(newer: Stated, older: Stated) -> bool:
    """Whether the later statement applies on certain days only: "on Fridays the shop closes at four"."""
    return bool((newer.context - older.context - older.topic - older.value) & _CALENDAR)


def _comparable(newer: Stated, older: Stated) -> bool:
    """Whether plain words after "is" are values of one attribute: "in the drawer" and "in the box", two colours."""
    if newer.attribute == "change" and not older.preposition:
        return True
    if newer.preposition or newer.attribute == "change":
        return all(one.shown.lower().startswith(("the ", "my ", "our ")) for one in (newer, older))
    return newer.head in _ONE_WORD or "prefer" in newer.topic or "favourit" in newer.topic


def _denial(newer: Stated, older: Stated) -> Conflict | None:
    """A conflict if one statement denies the other, or one contains "always" and the other "never"."""
    if newer.attribute != older.attribute or not newer.value or not older.value:
        return None
    if not (newer.value <= older.value or older.value <= newer.value):
        return None
    if newer.denied == older.denied:
        return None  # "always" beside a plain statement contradicts nothing
    what = "denies" if newer.denied else "says"
    other = "says" if newer.denied else "denies"
    return Conflict("contradict", 0.6, False, f"{what} “{newer.shown}”, which the earlier one {other}")


def _numbers(stems: frozenset[str]) -> frozenset[str]:
    return frozenset(one for one in stems if one[:1].isdigit())

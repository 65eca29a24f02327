"""Word lists of English, and patterns for times, places, people, durations and reasons in plain notes."""

from __future__ import annotations

import re

from rlm_mem.text.clauses import DAYS, MONTHS
from rlm_mem.text.patterns import late, word_set

DETERMINERS = word_set("a an the this that these those my your his her its our their some any every each no")
PREPOSITIONS = word_set(
    """
    of in on at to for from with by about into over after before under between through during without within
    against among around near since until as like than off onto across behind
    """
)
CONJUNCTIONS = word_set(
    "and or but so because if when while which who whom whose where that though although cause plus nor"
)
AUXILIARIES = word_set(
    """
    is are was were be been being am do does did has have had will would can could should may might must 's
    're 've 'll 'd 'm isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't haven't
    hasn't it's i'm i've i'd i'll we're we've that's there's they're he's she's you're let's gonna
    """
)
PRONOUNS = word_set("i you he she it we they me him us them myself yourself what there here")
FUNCTION_WORDS = DETERMINERS | PREPOSITIONS | CONJUNCTIONS | AUXILIARIES | PRONOUNS


def _any(words: str) -> str:
    """A pattern for any of these words; "_" stands for white space, a final "*" for an optional "s"."""
    return "(?:" + "|".join(w.replace("_", r"\s+").replace("*", "s?") for w in words.split()) + ")"


def _compiled(pattern: str) -> re.Pattern[str]:
    return late(pattern, re.IGNORECASE)


_DAY = _any("monday* tuesday* wednesday* thursday* friday* saturday* sunday*")
_MONTH = _any(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sept sep oct nov dec"
)
_PART = _any("morning* afternoon* evening* night* noon midnight lunchtime dawn weekend* weekday*")
_SEASON = _any("spring summer autumn winter")
_REGULAR = _any("daily weekly monthly nightly hourly yearly annually quarterly")
_UNIT = _any("ms millisecond* second* sec minute* min hour* day* night* week* month* year* decade* quarter*")
_NUMBER = r"(?:\d[\d.,]{0,20}+|" + _any(
    "a an one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty sixty ninety "
    "half_an? several a_few"
) + ")"  # fmt: skip
_ORDINAL = r"(?:\d{1,2}(?:st|nd|rd|th)|" + _any(
    "first second third fourth fifth sixth seventh eighth ninth tenth fifteenth twentieth"
) + r"|(?:last|first|next)\s+(?:working\s+)?(?:day|week|month|weekday))"  # fmt: skip
_HOUR = _any("one two three four five six seven eight nine ten eleven twelve")
_CLOCK = (
    r"(?:\d{1,2}:\d\d(?:\s?(?:[ap]m|utc|cet|gmt)\b)?|\d{1,2}\s?[ap]m\b"
    rf"|(?<=\bat )(?:half past |quarter past |quarter to )?{_HOUR}\b"
    r"(?=\s*+$|[.,;:!?)]|\s(?:in the|on|every|each|sharp|o.clock)\b))"
)
_DATE = (
    rf"(?:\d{{1,2}}\s+{_MONTH}\b(?:\s+\d{{4}})?|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?!\d)(?:,?\s+\d{{4}})?"
    rf"|{_MONTH}\s+\d{{4}}|{_MONTH}\b|\d{{4}}-\d\d-\d\d|(?:19|20)\d\d\b)"
)
_LEAD = _any("on at in from until till by before after since around about between early mid late and to")
_WHICH = _any("every each the early mid late other second first last next this working")

TIME = _compiled(
    rf"\b{_LEAD}?\s*+(?:{_WHICH}[\s-]++){{0,3}}"
    rf"(?:{_DAY}(?:\s+{_PART})?|{_PART}\b(?:\s+shifts?)?|{_CLOCK}|{_DATE}"
    rf"|{_ORDINAL}\b(?:\s+of\s++(?:(?:the|each|every)\s*+)?\w+)?"
    rf"|(?:every|each|twice an?|once an?)\s+(?:\w+\s+)?(?:{_UNIT}|{_SEASON})\b|{_SEASON}\b|{_REGULAR}\b)"
)
"""A time: a date, a clock time, a day of the week, "every second Monday", "night shifts", "monthly"."""

OFTEN = _compiled(
    rf"\b(?:(?:every|each)\s+(?:(?:other|two|three|four|five|six|ten|\d+|{_ORDINAL})\s+){{0,2}}"
    rf"(?:{_UNIT}|{_DAY}|{_MONTH}|{_SEASON}|{_PART})\b(?:\s+of\s+(?:the|each|every)\s+\w+)?|(?:once|twice)\s+(?:an?|every)\s+\w+"
    rf"|\w+\s+times\s+(?:an?|per)\s+\w+|{_REGULAR}|on {_DAY})\b"
)
LASTS = _compiled(
    rf"\b\d+\s?h\s?\d+(?:\s?min(?:utes)?)?\b|\b{_NUMBER}[\s-]++(?:and a half\s+)?{_UNIT}\b(?:[\s-]old)?"
    r"|\b\d+\s?(?:ms|s|min|h|d)\b|\bsince\s+[\w ]{3,20}"
)
AGED = _compiled(
    r"\b(?:is|was|turned|turns|turning|aged?|age of)\s+(\w+(?:-\w+)?)\b(?!\s?[%°€$£]|[.,]\d|\s(?:percent|euros?"
    r"|dollars?|minutes?|hours?|days?|weeks?|months?|met(?:er|re)s?|kilo\w{0,9}|people|times)\b)|\b(\d+|\w+)[\s-]years?[\s-]old\b|\bborn\b.*"
)
_BESIDE = _any(
    "in at on under behind near beside inside above below next_to from into opposite outside between to across off "
    "along with onto beneath"
)
PLACE = _compiled(rf"(?<![\w-]){_BESIDE}\s+(?=[\w/`~\"'])")
PATH = _compiled(r"(?<!\w)(?:~|\.)?/[\w./-]+|\bhttps?://\S+")
_KIN = _any("son* daughter* wife husband kid* child children friend* partner")
_NO_ADDRESS = rf"\d(?!\w{{0,4}}+\s(?!{_DAY}|{_MONTH}\b)(?-i:[^\W\d_a-z][^\W\d_A-Z]{{2}}))"
"""A number that does not begin an address such as "12 Harbour Street"."""
NOT_PLACES = _compiled(
    rf"^\w++\s++(?:the\s++)?(?:{_DAY}|{_MONTH}\b|{_NO_ADDRESS}|{_PART}\b|{_ORDINAL}\b|{_SEASON}\b"
    rf"|(?:his|her|their|its)\s+(?:\w+\s+)?{_KIN}|(?:use|be|keep|avoid|make|order)\b)"
)
_CAPITAL = r"[^\W\d_a-z]"
_NAME_PART = rf"(?:{_CAPITAL}\.(?=\s?{_CAPITAL})|{_CAPITAL}[\w'’-]*[^\W_])"
TITLED = late(
    rf"(?:(?:Mr|Mrs|Ms|Dr|Prof|Sir)\.?\s+)?{_NAME_PART}"
    rf"(?:(?:\s++|(?<=\.))(?:(?:van|von|de|da|di|du|dos|al|bin|el|la|der|den|ter)\s++){{0,2}}{_NAME_PART})*"
)
"""A name: words with a capital letter and initials ("Ursula K. Le Guin"), with a title before them if there is one."""

FULL_NAME = late(
    rf"{_CAPITAL}[\w'’-]{{0,40}}\s(?:(?:van|von|de|da|di|du|dos|al|bin|el|la|der|den|ter)\s){{0,2}}{_CAPITAL}[\w.]"
)
"""A name of two words or more."""

_CAPITALISED = word_set(
    """
    mon tue tues wed thu thurs fri english french german spanish dutch italian api sql
    anything anyone anybody everything everyone everybody nothing nobody something someone somebody
    """
)
NO_PERSON = _CAPITALISED | DAYS | {f"{day}s" for day in DAYS} | MONTHS - {"jan"}
"""Words with a capital letter that name no person; "Jan" is also a name."""
ROLE = _compiled(
    r"\b(?:the|a|an|our|his|her|their)\s++(?:[\w-]++\s++){0,2}?"
    + _any(
        "team group mother father brother sister son daughter wife husband friend uncle aunt cousin neighbour boss "
        "manager colleague landlord agency company office department crew lead"
    )
    + r"\b"
)

_PURPOSE = _any(
    "avoid reduce save cut keep make get be stay prevent improve learn help allow let have lower speed protect support "
    "limit ensure test simplify stop care study meet fit give"
)
BECAUSE = tuple(
    _compiled(pattern)
    for pattern in (
        r"\b(?:because|due to|owing to|thanks to|on account of|given that|as a result of|caused by)\b.*",
        r"\b(?:reason|cause|rationale|why)(?: (?:is|was)\b|\s?[:=–—]).*",
        rf"\b(?:so that|in order to|so as to|to (?={_PURPOSE}\b)).*",
        rf"\bsince\b(?!\s+(?:\d|{_MONTH}\b|{_DAY}|{_SEASON}\b|last|then|yesterday)).*",
        r"(?<=[\w,])\s+as\s+(?:it|he|she|they|we|the|its|his|her|their|our|there|this|that|no|most|all)\b.*",
        r"(?<=\w,)\s+as\s(?!well\b|soon\b|usual\b|of\b|in\b|on\b|at\b|for\b|to\b|per\b|before\b|ever\b|an?\b)\S.*",
    )
)
"""Patterns of reasons, the clearest first."""

SO = _compiled(
    # The lookahead checks once, at the start, that the text is one line.
    r"^(?=.+$)(.{8,}?)[,;]?(?<!\s)\s++(?:so|therefore|hence|which is why|that is why)\s++(?!that\b)(.+)"
)
SPLIT = _compiled(r"^(?P<what>(?:[^\s:]+\s+){3,30}?[^\s:]+?)(?::\s+|\s[–—-]\s)(?P<why>\S+\s+\S.*)")
"""A sentence with a colon or dash after at least four words: "We dropped the free tier: support load"."""
LOOSE = _compiled(r"\b(?:after|when|for|by|with|from)\s+\S.*")
REASON_FOLLOWS = _compiled(
    r"^(?:(?:the\s+)?(?:main\s+)?(?:reason|cause|motivation|rationale|why)|because|its?|that|this|they|he|she|we"
    r"|the old)\b"
)
CONDITION = _compiled(r"\b(?:when|whenever|if|as soon as|after|before|during|while)\s+\S.*")
CUT = _compiled(
    r"(?<!\s)(?:\s++[-–—]\s|\s*+(?:[,;(]|:\s|\b(?:because|since|so that|so|due to|owing to|when|while|which|who|but"
    r"|although|after|before|instead of|rather than|over|and (?:is|was|has|runs|lives|works|the|it|he|she|they|we))\b))"
)
"""The end of a phrase."""

FORBIDDEN = late(
    r"\b(?:forbidden|banned|disallowed|prohibited|dislikes?|hates?|avoids?|stopped|quit|removed|dropped|abandoned|retired"
    r"|cancell?ed|discontinued|declined|rejected|refused|denied|deprecated|disabled|replaced|postponed|gone"
    r"|(?:switched|turned) off|shut down|allergic)\b",
    re.IGNORECASE,
)
"""Words that negate their subject: something is forbidden, has ended, or was not done."""

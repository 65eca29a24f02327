"""Tables of everyday words: synonyms, members of classes, and patterns of values.

General English for plain notes, written by hand. A word of the question matches a sentence with this word, a word
of the same line here, or a member of the class that it names.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rlm_mem.record import FrozenRecord
from rlm_mem.search.related import related_terms
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.patterns import late

# Words of a question, each with words that may replace it in an answer.
_SYNONYMS = """
choose pick select decide decision settle opt adopt agree
use run rely choose adopt switch settle host
switch change migrate move replace
buy purchase order get
cost price pay fee charge spend expensive
pay buy purchase cost
spend pay cost buy
job profession occupation work role position employ living career engineer
work job employ employer
employer company work
boss manager report
live reside move home address based flat apartment house
own have possess
begin start open
finish end close complete
start begin join
leave quit
keep store save locate hang lie live put park hide
find keep locate lie
save store keep write log
release deploy ship
fail break crash
happen occur cause
give get hand
cause reason because due
fix solve repair patch resolve
maintain own responsible administer lead
responsible own lead maintain charge
lead head chair run
name call title
call name
birthday born birth
born birthday
married marry wife husband spouse
wife husband married spouse
study degree major graduate university
speak language fluent
drive car
eat diet vegetarian vegan food
vegetarian vegan meat
diet vegetarian vegan eat gluten halal kosher
drink coffee tea
ride bike bicycle motorcycle horse
teach teacher
write writer author
take drink eat
meet meeting see
meeting stand-up standup sync call retro
guest visitor
limit maximum cap most
allow permit let
forbid ban disallow never
format indent style
indent indentation spaces tab
colour color paint
holiday vacation
flat apartment
child kid son daughter
kid child son daughter
hour open
open hour
due deadline
deadline due
allergic allergy
allergy allergic
book reserve
arrive land
pet dog cat
password passphrase code pin
back-up backup
log logging
test pytest jest
expire renew
often every daily weekly monthly
near beside next
"""
# Classes named in questions, with their members.
_CLASSES = """
travel commute ride: train plane car bike bicycle bus ferry fly drive walk tram boat cycle rail flight taxi metro
database: postgresql postgres mysql sqlite mariadb redis mongodb duckdb oracle dynamodb cassandra
language: python rust go java kotlin ruby javascript typescript c++ english french german spanish dutch italian
    japanese portuguese arabic mandarin polish
framework: django flask fastapi rails react vue svelte angular spring laravel next.js
editor ide: vim neovim emacs vscode pycharm nano helix
manager: npm pnpm yarn pip poetry uv cargo conda
system: linux debian ubuntu windows macos fedora freebsd android ios
cloud provider host hosting: aws azure gcp hetzner heroku ovh digitalocean netlify vercel
broker queue: kafka rabbitmq nats sqs celery
licence license: mit apache gpl bsd agpl
breed dog: dachshund poodle labrador beagle terrier collie spaniel greyhound corgi retriever
pet: dog cat rabbit hamster parrot tortoise goldfish dachshund
instrument: piano guitar violin cello flute drums trumpet oboe harp accordion clarinet
food dish meal eat: risotto pizza pasta soup curry sushi bread cheese noodles stew salad fish meat rice vegan
drink: coffee tea water wine beer juice cocoa milk
music: jazz rock classical opera folk blues techno hip-hop metal band
sport exercise: football tennis climbing rowing swimming running cycling yoga hockey chess
colour color: red blue green yellow black white grey purple orange teal navy pink brown
car drive: volvo toyota fiat bmw ford tesla renault skoda van
hobby: climbing chess painting knitting rowing pottery gardening photography reading cycling baking
sibling: brother sister
parent: mother father mum dad
relative family: brother sister mother father uncle aunt cousin
weekday day: monday tuesday wednesday thursday friday saturday sunday
job profession occupation: nurse teacher engineer doctor baker plumber designer lawyer pilot carpenter
"""
_UNIT = r"\d(?:[\d.,:]*\d)?"
_MANY = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|eighteen|"
    r"twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|dozen)"
)
# Patterns of the values of attributes; a sentence without a match does not contain the value.
_VALUES: dict[str, re.Pattern[str]] = {
    noun: late(pattern, re.IGNORECASE)
    for nouns, pattern in (
        ("phone telephone mobile", r"\+?\d[\d ()/-]{4,}\d"),
        ("email e-mail mail", r"(?<![^\s@])[^\s@]+@[^\s@]+\.\w+"),
        ("url link website", r"https?://\S+|\b\w[\w-]{0,62}+\.(?:com|org|net|io|dev|example|de|uk)\b\S*"),
        ("old age", rf"\b(?:\d{{1,3}}|{_MANY})\b(?:[\s-]years?[\s-]old)?|\bborn\b"),
        ("company employer", r"(?:(?<=for )|(?<=at ))(?-i:[A-Z][\w&]+(?: [A-Z][\w&]+)*)"),
        ("port", r"\b\d{2,5}\b(?!\s?(?:%|(?:ms|s|min|h|hours?|days?|weeks?|months?|years?|times|[kmgt]i?b)\b))"),
        ("version", r"\bv?\d+(?:\.\d+)*\b"),
    )
    for noun in nouns.split()
}  # fmt: skip
_RECOGNISABLE = frozenset(
    {"phone", "telephone", "mobile", "email", "e-mail", "url", "old", "age", "company", "employer"}
)
"""Attributes whose values are recognisable without the attribute's name."""

NUMBER = late(
    rf"(?<![\w.])(?:[$€£]\s?)?(?:{_UNIT}\s?%?|{_MANY}(?:[\s-]{_MANY})*)(?!\w|\.[^\W\d])", re.IGNORECASE
)
"""A number; not the version "1.x"."""


def stem_of(word: str) -> str:
    """The stem of one word, as in `Sentence.stems`."""
    return get_analyser("english").stem(word.lower())


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    same: dict[str, set[str]] = {}
    for line in _SYNONYMS.strip().splitlines():
        head, *others = (stem_of(word) for word in line.split())
        same.setdefault(head, set()).update(others)
    kinds: dict[str, set[str]] = {}
    for line in _CLASSES.strip().replace("\n    ", " ").splitlines():
        heads, _, members = line.partition(":")
        for head in heads.split():
            kinds.setdefault(stem_of(head), set()).update(stem_of(word) for word in members.split())
    return {k: frozenset(v) for k, v in same.items()}, {k: frozenset(v) for k, v in kinds.items()}


class Relation(FrozenRecord, frozen=True):
    """An everyday relation: patterns of questions and statements about it, and the question's words for it."""

    name: str
    asked_by: re.Pattern[str]
    stated_by: re.Pattern[str]
    words: frozenset[str]


def _relation(name: str, asked: str, stated: str, words: str) -> Relation:
    question_words = frozenset(words.split())
    return Relation(name, late(asked, re.IGNORECASE), late(stated, re.IGNORECASE), question_words)


RELATIONS = (
    _relation(
        "dislike",
        r"\b(?:dislikes?|hates?|not like|n[o']t stand|detests?|loathes?|avoids?)\b",
        r"\b(?:dislike[sd]?|hate[sd]?|not like|n[o']t (?:like|stand)|detests?|loathes?|avoids?|averse to|sick of)\b",
        "dislike dislikes hate hates stand detest detests loathe loathes avoid avoids like",
    ),
    _relation(
        "like",
        r"(?<!look )(?<!looks )(?<!feel )"
        r"\b(?:likes?|loves?|prefers?|preferred|favou?rites?|enjoys?|fond of|preferences?)\b",
        r"\b(?:prefer\w*|like[sd]?|love[sd]?|favou?rites?|enjoy\w*|adore\w*|fond of|keen on|fan of|rather|into|best)\b",
        "like likes love loves prefer prefers preferred favourite favorite favourites favorites enjoy enjoys fond "
        "preference preferences",
    ),
    _relation(
        "job",
        r"\b(?:job|profession|occupation|for a living|work as)\b"
        r"|\bwhat (?:does|do|did) (?:the |my |our )?[\w'’-]+(?: \w+)? do\W*$",
        r"\b(?:works?|worked|working) (?:as|for|at|in)\b"
        r"|\bis (?:a|an|the)\b(?! (?:fan|friend|member|twin|bit|vegetarian))"
        r"|\b(?:jobs?|profession|employed|teaches|runs an?|trained as|training as)\b",
        "job profession occupation living work",
    ),
)


def same_words(term: str) -> frozenset[str]:
    """The synonyms of a stem, without the members of its class."""
    return _tables()[0].get(term, frozenset())


def value_pattern(term: str) -> re.Pattern[str] | None:
    """The pattern of the values of this attribute (a stem), or None."""
    return next((pattern for noun, pattern in _VALUES.items() if stem_of(noun) == term), None)


def is_of_class(term: str, stems: frozenset[str]) -> bool:
    """Whether a sentence with these stems matches a word of a question only as a member of the class that it names."""
    return not ({term} | same_words(term)) & stems and bool(_tables()[1].get(term, frozenset()) & stems)


def degree(term: str, stems: frozenset[str], text: str) -> float:
    """How well a sentence with these stems matches one word of a question, 0 to 1."""
    if term in stems:
        return 1.0
    if same_words(term) & stems:
        return 0.9
    if _tables()[1].get(term, frozenset()) & stems:
        return 0.9
    pattern = value_pattern(term)
    if pattern is not None and any(stem_of(one) == term for one in _RECOGNISABLE) and pattern.search(text):
        return 0.8
    return 0.6 if stems.intersection(related_terms(term, get_analyser("english"))) else 0.0

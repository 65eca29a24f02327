"""Shortens texts of one list to their clauses with the rarest words, without common words at the ends.

"I'm kinda worried that my $12.99/month subscription might not be enough, can you help me with that?" among texts that
ask for help becomes "$12.99/month subscription might not be enough". Words without content that many of the texts have
("my", "and") are omitted within a clause, too, except before a number or a denial, and within a name: "from 1.8s to
1.2s", "Lord of the Rings".
Common words are counted in the listed texts themselves, so no list of phrases is needed and any language works.
Numbers and denials are kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from rlm_mem.text.blocks import CODE, blocks, one_line
from rlm_mem.text.by_language import NEGATION
from rlm_mem.text.patterns import late
from rlm_mem.text.sentences import sentences

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

_MAX_CHARS = 3_000
"""Number of characters read per text."""
_MAX_CLAUSES = 60
_COMMON = 0.5
"""Minimum share of texts with a word for it to be common, and omitted."""
_FILLING = 0.3
"""Minimum share of texts with a word without content for it to be omitted within a clause, too."""
_FEW = 4
"""Minimum number of texts with a common word."""
_RARE = 0.1
"""Maximum share of texts with a rare word."""
_FIRST = 1.25
"""Factor for the first clause, which usually names the subject."""
_ABOUT = 2.0
"""Factor for a clause with a term that the list is about."""
_NAMED = 0.75
"""Minimum weight of a name, relative to a word of one text only, since it shows the subject of a row."""
_NAME_GAIN = 1.2
"""The same for the choice of clauses, since without the name a row does not identify the person."""
_TOLD = 0.5
"""Factor for words that other rows have, too, so that rows differ."""
_CODE_SIGN = late(r"\w[(\[{]\S|[=<>{};]")
"""Matches words of code: "db.add(user", "<div", "+="."""
_CODE_GAIN = 0.25
"""Factor for clauses with at least half code words, since pasted code is often not marked as such."""
_JOINED = 12
"""Added to the length of a clause, so that very short ones are not preferred."""
_LEAST_GAIN = 0.3
"""Minimum gain of a further clause, relative to the first chosen one: "review my code" has little content."""
_MIN_CUT = 24
"""Minimum characters of a truncated clause."""
_BETWEEN = 2
"""Number of characters between two clauses."""
_MAX_CHARS_OF_CLAUSE = 600
"""Number of characters of a truncated clause that are searched for numbers and names."""
_GAP = " … "
_CLAUSE_END = late(r"(?<=[,;:!?…]) |(?<=[，；：、。！？])| (?=[–—(-])|(?<=\)) ")
_NAME = late(r"(?<=[\w,] )[A-Z][\w'’-]{1,40}")
_CAPITAL = late(r"(?<!\w)[A-Z][\w'’-]{1,40}")
_DIGIT = late(r"\d")
_FACT = late(
    r"(?:(?<!\S)(?:[A-Z][a-z]{2,8}\.? )?[$€£¥]?\d[^\s…]{0,30}(?:(?<=,) (?:19|20)\d\d)?|"
    r"(?<=[\w,] )[A-Z][\w-]{2,40}(?: [A-Z][\w-]{1,40}){0,3})"
)
"""A number or date, or a name within a sentence."""
_MARKS = '.,;:!?…()[]{}"“”„«»*_`'


class _Clause(NamedTuple):
    text: str
    terms: frozenset[str]
    brief: str = ""
    """Only its informative words, for when it does not fit."""


class Shortener:
    """Shortens texts that are listed together.

    Args:
        texts: all texts of the list, in any order, from which word frequencies are counted.
        analyser: the analyser of their language.
        about: text with words that stay, whose clauses come first unless the words are common.
    """

    def __init__(self, texts: Iterable[str], analyser: Analyser, about: str = "") -> None:
        self._analyser = analyser
        self._terms: dict[str, list[str]] = {}
        counts: Counter[str] = Counter()
        said: Counter[str] = Counter()
        named: set[str] = set()
        number = 0
        for text in texts:
            counts.update(set(self._terms_of(text)))
            said.update(set(map(_bare, text[:_MAX_CHARS].split())))
            named.update(analyser.terms(" ".join(_NAME.findall(text[:_MAX_CHARS]))))
            number += 1
        self._number = number
        self._counts = counts
        self._common = max(_FEW, _COMMON * number)
        self._few = max(_FEW, _RARE * number)
        self._subject = frozenset(analyser.terms(about))
        self._about = frozenset(term for term in self._subject if counts[term] < self._common)
        self._often = often = max(_FEW, _FILLING * number)
        self._filling = frozenset(
            word
            for word, times in said.items()
            if times >= often and not analyser.terms(word) and not NEGATION.fullmatch(word)
        )
        self._named = named
        self._most = math.log(number + 1)
        self._least_of_name = _NAMED * self._most

    def content(self, text: str) -> float:
        """How distinctive a text is: the total weight of its distinct words."""
        return sum(map(self._weight, set(self._terms_of(text))))

    def share(self, text: str, of: str, also: Iterable[str] = ()) -> float:
        """The share of the words of ``of`` that a text has, or that are in ``also``, 0 to 1, weighted by rarity."""
        wanted = set(self._analyser.terms(of))
        has = wanted.intersection(self._terms_of(text)).union(wanted.intersection(also))
        return sum(map(self._weight, has)) / sum(map(self._weight, wanted)) if has else 0.0

    def new(self, text: str, known: set[str]) -> float:
        """The share of a text's words that are not known, 0 to 1, weighted by rarity."""
        own = set(self._terms_of(text))
        whole = sum(map(self._weight, own))
        return sum(map(self._weight, own - known)) / whole if whole else 0.0

    def has(self, text: str, terms: frozenset[str]) -> bool:
        """Whether a text has any of these terms."""
        return not terms.isdisjoint(self._terms_of(text))

    def terms(self, text: str) -> frozenset[str]:
        """The distinct terms of a text."""
        return frozenset(self._terms_of(text))

    def names(self, query: str) -> frozenset[str]:
        """Terms of the names in a query: words capitalised inside a sentence of the query or of a text."""
        capital = self._analyser.terms(" ".join(_CAPITAL.findall(query)))
        within = self._analyser.terms(" ".join(_NAME.findall(query)))
        return frozenset(within).union(self._named.intersection(capital))

    def likeness(self, texts: Sequence[str], shared: Collection[int]) -> list[float]:
        """For each text, the mean share of its words that some of the texts have, 0 to 1, weighted by rarity.

        Args:
            shared: places of those texts; each of them is compared with the others.
        """
        counts = Counter(chain.from_iterable(self.terms(texts[place]) for place in shared))
        found = []
        for place, text in enumerate(texts):
            own = place in shared
            terms = self.terms(text)
            whole = sum(map(self._weight, terms)) * max(1, len(shared) - own)
            found.append(
                sum(self._weight(term) * (counts[term] - own) for term in terms) / whole if whole else 0.0
            )
        return found

    def rare(self, query: str) -> frozenset[str]:
        """Terms of a query that few of the texts have."""
        return frozenset(one for one in self._analyser.terms(query) if self._counts.get(one, 0) <= self._few)

    def short(self, text: str, chars: int, facts: int = 0, told: Set[str] = frozenset()) -> str:
        """Shorten a text to one line of at most ``chars`` characters, clauses in order; empty if it is only code.

        Args:
            facts: characters of rare numbers, dates and names of omitted clauses beyond ``chars``.
            told: terms of other rows: facts with them are left out, and clauses of other words come first.
        """
        said = list(_prose(text[:_MAX_CHARS]))
        whole = one_line(" ".join(said), chars + 1)
        if len(whole) <= chars:
            return whole
        clauses = dict(enumerate(islice(self._clauses(said), _MAX_CLAUSES))) or {
            0: _Clause(whole, frozenset())
        }
        left = dict(clauses)
        chosen: dict[int, str] = {}
        covered: set[str] = set()
        room = chars
        first = 0.0
        while left:
            gains = {
                number: self._gain(part, covered, told)
                * (1 if number else _FIRST)
                * (1 if self._about.isdisjoint(part.terms) else _ABOUT)
                for number, part in left.items()
            }
            best = max(gains, key=gains.__getitem__)
            if chosen and gains[best] <= _LEAST_GAIN * first:
                break
            first = first or gains[best]
            part = left.pop(best)
            if len(part.text) <= room:
                chosen[best] = part.text
            elif room >= _MIN_CUT or (room > 0 and not chosen):
                chosen[best] = _cut(part.text if chosen else part.brief or part.text, room)
            else:
                continue
            covered |= part.terms
            room -= len(chosen[best]) + _BETWEEN
        known = told | self.terms(" ".join(chosen.values()))
        for number, omitted in self._facts(clauses, known, facts).items():
            chosen[number] = _GAP.join(filter(None, (chosen.get(number, "").rstrip("…"), omitted)))
        return ", ".join(chosen[number] for number in sorted(chosen))

    def _facts(self, clauses: Mapping[int, _Clause], told: Set[str], room: int) -> dict[int, str]:
        """Numbers, dates and names that have room and new terms, by the number of their clause."""
        found: dict[int, str] = {}
        for number, clause in clauses.items():
            first = clause.text.partition(" ")[0]
            # Within a sentence, a name may begin a clause.
            text = (
                f", {clause.text}" if self._named.intersection(self._analyser.terms(first)) else clause.text
            )
            for fact in _FACT.finditer(text, 0, _MAX_CHARS_OF_CLAUSE):
                new = frozenset(self._analyser.terms(fact[0])) - told
                if not new or max(self._counts.get(term, 0) for term in new) > self._often:
                    continue
                # A bare number means little without its noun.
                shown = " ".join(text[fact.start() :].split()[:2]) if fact[0].isdigit() else fact[0]
                shown = shown.rstrip(_MARKS)
                room -= len(shown) + _BETWEEN
                if room < 0:
                    return found
                told = told | set(self._analyser.terms(shown))
                found[number] = f"{found[number]}, {shown}" if number in found else shown
        return found

    def _terms_of(self, text: str) -> list[str]:
        found = self._terms.get(text)
        if found is None:
            found = self._terms[text] = self._analyser.terms(text[:_MAX_CHARS])
        return found

    def _weight(self, term: str) -> float:
        weight = math.log((self._number + 1) / self._counts.get(term, 1))
        if _DIGIT.search(term):
            return self._most if self._counts.get(term, 0) <= self._few else weight
        return max(weight, self._least_of_name) if term in self._named else weight

    def _gain(self, part: _Clause, covered: set[str], told: Set[str]) -> float:
        whole = sum(
            (_NAME_GAIN * self._most if term in self._named else self._weight(term))
            * (_TOLD if term in told else 1)
            for term in part.terms - covered
        )
        words = part.text.split()
        code = 2 * sum(_CODE_SIGN.search(word) is not None for word in words) >= len(words)
        return whole * (_CODE_GAIN if code else 1) / math.sqrt(len(part.text) + _JOINED)

    def _clauses(self, said: Iterable[str]) -> Iterable[_Clause]:
        """Split sentences into clauses without common words at their ends; short ones join the clause before."""
        last: _Clause | None = None
        for sentence in said:
            for clause in _CLAUSE_END.split(" ".join(sentence.split())):
                found = self._trimmed(clause)
                if found is None:
                    continue
                if last is not None and len(found.terms) < 2:
                    last = _Clause(
                        f"{last.text}, {found.text}", last.terms | found.terms, f"{last.brief}, {found.brief}"
                    )
                    continue
                if last is not None:
                    yield last
                last = found
        if last is not None:
            yield last

    def _trimmed(self, clause: str) -> _Clause | None:
        """A clause from its first to its last informative word: rare words, numbers with their noun, denials."""
        words = clause.split()
        informative = [
            place for place, word in enumerate(words) if self._informs(word, words[place + 1 : place + 2])
        ]
        if not informative:
            return None
        kept = (
            place
            for place in range(informative[0], informative[-1] + 1)
            if _bare(words[place]) not in self._filling
            or any(map(_is_telling, words[place + 1 : place + 2]))
            or self._is_within_name(words, place)
        )
        text, brief = (
            " ".join(words[place] for place in places).strip(" ,;:.()[]") for places in (kept, informative)
        )
        return _Clause(text, frozenset(self._analyser.terms(clause)), brief) if text else None

    def _is_within_name(self, words: list[str], place: int) -> bool:
        """Whether a word is between two words of a name: "The Name of the Wind"."""
        beside = reversed(words[max(0, place - 2) : place]), words[place + 1 : place + 3]
        return all(
            next((word for word in some if _bare(word) not in self._filling), "").strip(_MARKS)[:1].isupper()
            for some in beside
        )

    def _informs(self, word: str, following: list[str]) -> bool:
        bare = word.strip(_MARKS)
        return (
            any(map(str.isdigit, bare))
            or (bare[:1].isupper() and bool(following) and following[0][:1].isdigit())
            or NEGATION.fullmatch(bare) is not None
            or any(
                self._counts.get(term, 0) < self._common or term in self._named or term in self._subject
                for term in self._analyser.terms(bare)
            )
        )


def _bare(word: str) -> str:
    """A word without marks around it, in lower case."""
    return word.strip(_MARKS).casefold()


def _is_telling(word: str) -> bool:
    """Whether a word is a number or a denial, which mean little without the word in front of them."""
    return _DIGIT.search(word) is not None or NEGATION.fullmatch(_bare(word)) is not None


def _prose(text: str) -> Iterable[str]:
    """The sentences of a text outside of code."""
    for block in blocks(text):
        if block.kind != CODE:
            for start, end in sentences(text, block.body_start, block.end):
                yield text[start:end]


def _cut(text: str, chars: int) -> str:
    """Truncate a clause, keeping the numbers, dates and names after the cut in at most half of the space."""
    if len(text) <= chars:
        return text
    facts: list[str] = []
    room = chars
    for fact in reversed(list(_FACT.finditer(text, 0, _MAX_CHARS_OF_CLAUSE))):
        size = len(fact[0]) + len(_GAP)
        if fact.end() >= room and room - size >= max(chars // 2, _MIN_CUT):
            facts.insert(0, fact[0])
            room -= size
    head = text[: room - 1].rpartition(" ")[0] or text[: room - 1]
    return _GAP.join([head, *facts]) if facts else f"{head}…"

"""Short forms of texts that are listed together: the clauses with the rarest words, without the common ones.

"I'm kinda worried that my $12.99/month subscription might not be enough, can you help me with that?" among texts that
ask for help becomes "$12.99/month subscription not enough". What is common is counted in the texts listed, so there is
no list of phrases, and any language will do. Numbers and denials are kept.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rlm_mem.text.blocks import CODE, blocks, one_line, sentences

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

__all__ = ["Shortener"]

_MOST_CHARS = 3_000
"""Characters of a text that are read."""
_MOST_CLAUSES = 60
_COMMON = 0.3
"""Share of the texts from which on a word is common, and left out."""
_FEW = 4
"""Fewest texts in which a common word occurs."""
_FIRST = 1.25
"""How much more the first clause counts: it mostly names the matter."""
_NAMED = 0.75
"""Least weight of a name, as a share of that of a word of one text alone: it tells who or what a row is about."""
_JOINED = 12
"""Added to the length of a clause, so that very short ones do not come first."""
_LEAST_CUT = 24
"""Fewest characters into which a clause is cut."""
_CLAUSE_END = re.compile(r"(?<=[,;:!?…]) |(?<=[，；：、。！？])| (?=[–—(-])|(?<=\)) ")
_DENIAL = re.compile(
    r"(?:not|never|no|nobody|nothing|none|neither|nor|without|cannot|[^\W\d_]{1,8}n['’]t|nicht|nie|kein\w{0,2}|ohne|pas|"
    r"jamais|sans|aucune?|nunca|jamás|ningún|sin|non|mai|senza|não|sem)",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\w,] )[A-Z][\w'’-]{1,40}")
_MARKS = '.,;:!?…()[]{}"“”„«»*_`'


class _Clause(NamedTuple):
    text: str
    terms: frozenset[str]


class Shortener:
    """Shortens texts that are listed together.

    Args:
        texts: all of them, in any order; each counts once for each of its words.
        analyser: of the language that they are in.
        about: terms that are kept, and count as much as those of one text alone.
    """

    def __init__(self, texts: Iterable[str], analyser: Analyser, about: Collection[str] = ()) -> None:
        self._analyser = analyser
        self._about = frozenset(about)
        self._terms: dict[str, list[str]] = {}
        self._read: dict[str, tuple[list[str], list[_Clause]]] = {}  # sentences and, once needed, clauses
        counts: Counter[str] = Counter()
        named: set[str] = set()
        number = 0
        for text in texts:
            counts.update(set(self._terms_of(text)))
            named.update(analyser.terms(" ".join(_NAME.findall(text[:_MOST_CHARS]))))
            number += 1
        self._number = number
        self._counts = counts
        for term in self._about & counts.keys():
            counts[term] = 1
        self._common = max(_FEW, _COMMON * number)
        self._named = named
        self._least_of_name = _NAMED * math.log(number + 1)

    def content(self, text: str) -> float:
        """How much a text says that the others do not: the weights of its different words."""
        return sum(map(self._weight, set(self._terms_of(text))))

    def share(self, text: str, of: str) -> float:
        """How much of another text this one has, 0 to 1: by its words, of which the rarer weigh more."""
        wanted = set(self._analyser.terms(of))
        has = wanted.intersection(self._terms_of(text))
        return sum(map(self._weight, has)) / sum(map(self._weight, wanted)) if has else 0.0

    def short(self, text: str, chars: int) -> str:
        """The text on one line of at most ``chars`` characters, its clauses in order; empty if it is all code."""
        if text not in self._read:
            self._read[text] = list(_prose(text[:_MOST_CHARS])), []
        said, clauses = self._read[text]
        whole = one_line(" ".join(said), chars + 1)
        if len(whole) <= chars:
            return whole
        if not clauses:
            clauses += islice(self._clauses(said), _MOST_CLAUSES)
        left = dict(enumerate(clauses))
        chosen: dict[int, str] = {}
        told: set[str] = set()
        room = chars
        while left and room > 0:
            gains = {number: self._gain(number, clause, told) for number, clause in left.items()}
            best = max(gains, key=gains.__getitem__)
            clause = left.pop(best)
            if not gains[best] and chosen:
                break
            if len(clause.text) <= room:
                chosen[best] = clause.text
            elif room >= _LEAST_CUT or not chosen:
                chosen[best] = one_line(clause.text, room)
            else:
                continue
            told |= clause.terms
            room -= len(chosen[best]) + 2
        return ", ".join(chosen[number] for number in sorted(chosen)) or whole[:chars]

    def _terms_of(self, text: str) -> list[str]:
        found = self._terms.get(text)
        if found is None:
            found = self._terms[text] = self._analyser.terms(text[:_MOST_CHARS])
        return found

    def _weight(self, term: str) -> float:
        weight = math.log((self._number + 1) / self._counts.get(term, 1))
        return max(weight, self._least_of_name) if term in self._named else weight

    def _gain(self, number: int, clause: _Clause, told: set[str]) -> float:
        weight = sum(map(self._weight, clause.terms - told))
        return weight / math.sqrt(len(clause.text) + _JOINED) * (1 if number else _FIRST)

    def _clauses(self, said: Iterable[str]) -> Iterable[_Clause]:
        """The clauses without their common words; one of a single word belongs to the clause before it."""
        last: _Clause | None = None
        for sentence in said:
            for clause in _CLAUSE_END.split(" ".join(sentence.split())):
                kept = self._telegram(clause)
                if not kept:
                    continue
                found = _Clause(kept, frozenset(self._analyser.terms(clause)))
                if last is not None and len(found.terms) < 2:
                    last = _Clause(f"{last.text}, {found.text}", last.terms | found.terms)
                    continue
                if last is not None:
                    yield last
                last = found
        if last is not None:
            yield last

    def _telegram(self, clause: str) -> str:
        """The words of a clause that say something: rare ones, numbers with the name before them, denials."""
        words = clause.split()
        kept = []
        for place, word in enumerate(words):
            bare = word.strip(_MARKS)
            following = words[place + 1] if place + 1 < len(words) else ""
            if (
                any(map(str.isdigit, bare))
                or (bare[:1].isupper() and following[:1].isdigit())
                or _DENIAL.fullmatch(bare)
                or any(self._counts.get(term, 0) < self._common for term in self._analyser.terms(bare))
            ):
                kept.append(word)
        return " ".join(kept).strip(" ,;:.()[]")


def _prose(text: str) -> Iterable[str]:
    """The sentences of a text outside of code."""
    for block in blocks(text):
        if block.kind != CODE:
            for start, end in sentences(text, block.body_start, block.end):
                yield text[start:end]

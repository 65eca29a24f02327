"""Passages of the memory with their sentences and words, and the answer read from them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property

from rlm_mem.record import FrozenRecord
from rlm_mem.text.analysis import PARTS, get_analyser
from rlm_mem.text.patterns import late
from rlm_mem.text.sentences import sentences_of_lines

_WORD = late(r"[$€£]?\w+(?:['’.,:&/-]\w+)*%?|[\"“”]")
_HYPHEN = late("-")
_COMPOUND = late(r"[-_/=]|[a-z][A-Z]|\w\.\w")
"""Marks the parts of compounds: "client-side", "max_size", "maxSize"."""


class Word(FrozenRecord, frozen=True):
    """One word of a sentence; ``opens`` and ``closes``: a stop precedes or follows it."""

    text: str
    low: str
    stem: str
    start: int
    end: int
    opens: bool
    closes: bool


class Sentence(FrozenRecord, frozen=True, dict=True):
    """One sentence of a passage, at ``start`` of its text."""

    text: str
    start: int
    of_document: bool = False

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words in order; quotation marks are words of their own."""
        stem = get_analyser("english").stem
        matches = list(_WORD.finditer(self.text))
        found = []
        for number, match in enumerate(matches):
            before = self.text[matches[number - 1].end() : match.start()] if number else "."
            after = self.text[match.end() : matches[number + 1].start()] if number + 1 < len(matches) else "."
            low = match.group().lower().replace("’", "'")
            found.append(
                Word(
                    match.group(), low, stem(low.removesuffix("'s")), match.start(), match.end(),
                    bool(before.strip()) or not number, bool(after.strip()) or number + 1 == len(matches),
                )
            )  # fmt: skip
        return tuple(found)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all its words and of the parts of those with hyphens, in a document also of other compounds."""
        stem = get_analyser("english").stem
        compound = _COMPOUND if self.of_document else _HYPHEN
        split = PARTS.findall if self.of_document else _HYPHEN.split
        parts = (
            part for word in self.words if compound.search(word.text) for part in split(word.text) if part
        )
        return frozenset(word.stem for word in self.words) | frozenset(stem(part.lower()) for part in parts)

    @property
    def asks(self) -> bool:
        """Whether it is a question."""
        return self.text.rstrip("\"”')] ").endswith("?")


class Passage(FrozenRecord, frozen=True, dict=True):
    """A turn, a sentence or a short paragraph that the search found.

    ``at`` is its time, if known; ``before`` is what was said just before it, if anything; ``score`` is its search
    score; ``current`` is False if a later memory replaces it; ``heading`` is the heading of its
    section in a document; ``untrusted``: it did not come from a person or an agent; ``part``: it is a part of a
    text that was too long for one memory; ``document``: title and file name of that text, and ``conversation_id``
    its conversation, if known; ``later``: a later note on the same subject that the search marked.
    """

    chunk_id: str
    text: str
    author: str = ""
    at: datetime | None = None
    score: float = 0.0
    before: str = ""
    current: bool = True
    heading: str = ""
    untrusted: bool = False
    part: bool = False
    document: str = ""
    conversation_id: str = ""
    later: Passage | None = None

    @property
    def of_document(self) -> bool:
        """Whether it is a section or part of a longer text, not a note of its own."""
        return self.part or bool(self.heading)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """Its sentences in order."""
        return tuple(split_sentences(self.text, of_document=self.of_document))

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all its words."""
        return frozenset[str]().union(*(sentence.stems for sentence in self.sentences))

    @cached_property
    def document_stems(self) -> frozenset[str]:
        """Stems of the name of its document and of its topmost heading; none for a note."""
        if not self.of_document:
            return frozenset()
        return heading_stems(f"{self.document} {self.heading.partition(' / ')[0]}")

    @cached_property
    def before_stems(self) -> frozenset[str]:
        """Stems of the text before it."""
        return Sentence(self.before, 0).stems


class Reading(FrozenRecord, frozen=True):
    """An answer read from passages.

    Attributes:
        answer: words of the passages, a date computed from them, "Yes" or "No"; None: no answer.
        passages: the passages it rests on, most important first.
        answerable: probability that the passages contain an answer, 0 to 1.
        confidence: probability that this answer is right, 0 to 1.
        exact: the answer is a part of a sentence of exactly the kind asked for: a date, a figure, a person …
    """

    answer: str | None
    passages: tuple[Passage, ...]
    answerable: float
    confidence: float
    exact: bool = False


_JOINED = late(r"[^\w]+|_")


def heading_stems(heading: str) -> frozenset[str]:
    """Stems of a heading and of the parts of its names: "shlex.split" and "npm-prune" match each of their words."""
    return Sentence(heading, 0).stems | Sentence(_JOINED.sub(" ", heading), 0).stems


_BROKEN = late(r"\u2010\n[ \t]*(?=[^\W\d_])")
_WRAPPED = late(r"(?<=[^\n]{40}[^\n.!?:])\n[ \t]*(?:>[ \t]+)?(?=[^\W_]|[`\"'(<]|:\w)(?!\d+[.)] )")


def unwrapped(text: str) -> str:
    """A text with the lines of its paragraphs joined: a long line that ends without a stop continues in the next.

    A word that is hyphenated at the end of a line is joined.
    """
    return _WRAPPED.sub(" ", _BROKEN.sub("", text))


_MIN_LINES = 3
"""Fewest lines of a text that may be a version of a list."""


def without_earlier_versions(passages: Sequence[Passage]) -> list[Passage]:
    """The passages without the lists of which there is a later version: its first line and half of all lines are the
    same."""
    lines = {id(one): [line.strip() for line in one.text.splitlines() if line.strip()] for one in passages}
    lists = [one for one in passages if one.at and len(lines[id(one)]) >= _MIN_LINES]

    def is_version(earlier: Passage, later: Passage) -> bool:
        before, after = lines[id(earlier)], lines[id(later)]
        same = sum(line in after for line in before)
        return str(earlier.at) < str(later.at) and before[0] == after[0] and 2 * same >= len(before)

    return [one for one in passages if one not in lists or not any(is_version(one, other) for other in lists)]


_LINK_TARGET = late(r"\.\. _|\[[^\]\n]{1,200}\]:\s")
"""The beginning of a line that only defines a link target, in reStructuredText or Markdown."""


def split_sentences(text: str, *, of_document: bool = False) -> list[Sentence]:
    """The sentences of a text, except definitions of link targets."""
    return [
        Sentence(text[start:end], start, of_document)
        for start, end in sentences_of_lines(text)
        if any(map(str.isalnum, text[start:end])) and not _LINK_TARGET.match(text, start)
    ]

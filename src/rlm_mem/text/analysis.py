"""Splits text into segments, and segments into terms: the normalised words shared by the index and queries.

One `Analyser` serves writing and searching, so terms are the same on both sides. It folds case and accents, splits
identifiers (`camelCase`, `snake_case`) into whole and parts, keeps versions and decimals whole, drops stop words, maps
irregular forms to their base and stems the rest with the Snowball stemmer of the configured language. Scripts without
spaces (Han, kana, Hangul, Thai, …) become character bigrams; right-to-left scripts are split at spaces like any other
and never reordered. Offsets are characters of the original text.

An index has more terms than `terms` returns: also everyday words ("like", "will") and single Han characters, since a
question may consist of nothing else. `located_terms(…, indexed=True)` returns them, too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial, reduce
from itertools import chain
from operator import or_
from threading import Lock
from typing import TypeVar

import Stemmer  # type: ignore[import-not-found]  # it has no annotations
from msgspec import Struct

from rlm_mem.chunk import normalise_unicode
from rlm_mem.errors import InvalidConfig
from rlm_mem.text import cues
from rlm_mem.text.irregular import irregular_forms
from rlm_mem.text.patterns import late
from rlm_mem.text.segments import Headings, split_segments
from rlm_mem.text.stopwords import function_words, stop_words

#: Maximum characters of a term; longer runs (hashes, base64) are truncated.
MAX_TERM = 48

#: Maximum number of terms of headings, titles and paths indexed with each segment below them.
_MAX_AROUND = 32

# Flag bits of a segment (stored as one unsigned 32-bit number).
IS_QUESTION = 1 << 0  #: its last sentence asks something
_TIME_SHIFT = 1  #: bits 1 and 2: number of time expressions, 0 to 3
PLACE_CUE = 1 << 3  #: "in Paris", "at the beach", "from Sweden"
DURATION = 1 << 4  #: "for three years", "since 2016", "two weeks"
QUOTES = 1 << 5  #: something in quotation marks
CAPITALS = 1 << 6  #: a capitalised word inside a sentence
NUMBER = 1 << 7  #: a numeral or a number word
FIRST_PERSON = 1 << 8  #: "I", "my", "we"
SECOND_PERSON = 1 << 9  #: "you", "your"
REASON = 1 << 10  #: "because", "inspired", "that's why"
CODE = 1 << 11  #: a fenced code block
HEADING = 1 << 12
ITEM = 1 << 13  #: a list item
TURN = 1 << 14  #: a turn of a dialogue
FEELING = 1 << 15  #: "happy", "felt", "grateful"
PERSON_CUE = 1 << 16  #: "my sister", "a friend"
PLAN = 1 << 17  #: "going to", "planning", "can't wait", "next month"
PREFERENCE = 1 << 18  #: "love", "favourite", "enjoy"
OPENS = 1 << 19  #: the first segment of its chunk
HAS_QUESTION = 1 << 20  #: asks something anywhere
SHORT = 1 << 21  #: fewer than four terms
ATTACHMENT = 1 << 22  #: mentions a picture, photo or file that was shared
OPINION = 1 << 23  #: "I think", "should", "recommend"
NEGATION = 1 << 24  #: "not", "never", "no longer"

_APOSTROPHES = "’‘ʼ＇`"
#: Letters that Unicode does not decompose, with their usual replacements in names: "Lodz", "Soren".
_PLAIN_LETTERS = dict(zip("łøđħŧıæœ", ("l", "o", "d", "h", "t", "i", "ae", "oe"), strict=True))
_WORD = re.compile(
    r"\d{1,3}(?:,\d{3}){1,8}(?![\w,])"
    r"|[^\W_]+(?:'[^\W_]+)*(?:[._][^\W_]+(?:'[^\W_]+)*)*(?:\u2010\r?\n[ \t]*[^\W\d_]+)?"
)
_MARKS = (
    r"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
    r"\u3099\u309a]"
)
"""Accents behind their letters, and vowel signs of Indic scripts, which are no letters for `re`."""
_HAS_MARK = late(_MARKS)
# Takes twice the time of the other pattern.
_MARKED_WORD = late(_WORD.pattern.replace(r"[^\W_]+", rf"(?:[^\W_]++{_MARKS}*+)++"))
_BROKEN = late(r"\u2010\s+")  # a word broken at the end of a line
_ELIDED = late(
    r"(?:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu|(?:da|de|ne|que|su)?ll|all|un)'(?=[^\W\d_]{2})", re.IGNORECASE
)  # an article or pronoun before a vowel in French and Italian: "l'assurance", "qu'elle", "dell'arte"
_NUMERIC = late(r"\d+(?:[.,]\d+)+$")
_THOUSANDS = late(r"\d{1,3}(?:,\d{3})+$")
PARTS = late(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\dA-Za-z_]+")
"""The parts of compound identifiers: "max_size", "maxSize"."""
SPACELESS = late(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u1100-\u11ff\uac00-\ud7af\u3130-\u318f"  # Hangul
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Han
    "]+"
)
"""A run of letters of scripts without spaces between words, and of Hangul, which are indexed as pairs of characters."""

_OTHER_QUOTES = frozenset("“”«»„")  # beside those of ASCII
_CASELESS_CUES = (
    (cues.DURATION, DURATION),
    (cues.NUMERAL, NUMBER),
    (cues.SECOND, SECOND_PERSON),
    (cues.REASON, REASON),
    (cues.FEELING, FEELING),
    (cues.PERSON, PERSON_CUE),
    (cues.PLAN, PLAN),
    (cues.PREFERENCE, PREFERENCE),
    (cues.ATTACHMENT, ATTACHMENT),
    (cues.OPINION, OPINION),
    (cues.NEGATION, NEGATION),
)
_CASED_CUES = (
    (cues.PLACE, PLACE_CUE),
    (cues.QUOTED, QUOTES),
    (cues.CAPITAL, CAPITALS),
    (cues.FIRST, FIRST_PERSON),
)
_CUE_BITS = reduce(or_, (bit for _, bit in (*_CASELESS_CUES, *_CASED_CUES)))
_KIND_FLAGS = {"code": CODE, "heading": HEADING, "item": ITEM, "turn": TURN}

# A text of ASCII words has a cue only if it has one of the cue's words listed here, or a word that begins with a listed
# word of three letters or more.
_TIMES, _SITES = 1 << _TIME_SHIFT, 2 << _TIME_SHIFT  # in flags the bits of a count, in hints free
_DIGITS = 1 << 25  # unused in flags: the text has a number
_PERIODS = "day night week month year"
_HINTS = {
    _TIMES: f"{_PERIODS} {cues.MONTHS.replace('|', ' ')} yesterday today tonight tomorrow ago recently lately "
    "currently nowadays monday tuesday wednesday thursday friday saturday sunday morning afternoon evening summer "
    "winter spring fall autumn now while christmas thanksgiving halloween easter birthday",
    _SITES: "beach park city town country home school office church museum mountain forest lake river cafe restaurant "
    "gym studio store shop library hospital shelter center centre island village coast state woods trail",
    PLACE_CUE: "in at to from near around across through visit outside inside of",
    DURATION: f"{_PERIODS} second minute hour decade since ages while time far",
    NUMBER: f"one once twice both first second third {cues.NUMBER_WORDS.replace('|', ' ')}",
    FIRST_PERSON: "i my me mine we our us",
    SECOND_PERSON: "you ya u",
    REASON: "because cause cuz since so order why reason inspir motivat due thanks led made makes wanted help "
    "therefore hence remind result",
    FEELING: "feel felt happy happier sad glad proud grateful thankful excit nervous anxious scared afraid angry upset "
    "amazing awesome great incredible inspir relieved worried stress overwhelm joy peace calm love loving hurt lonely "
    "tired exhausted free awe blast disappoint frustrat reward",
    PERSON_CUE: "mom mum mother dad father parent brother sister sibling son daughter kid child husband wife partner "
    "boyfriend girlfriend fianc friend buddy buddies cousin aunt uncle grandma grandpa grandmother grandfather granny "
    "niece nephew boss colleague coworker teammate team coach teacher mentor neighbo roommate doctor manager client "
    "customer maintainer author owner",
    PLAN: "going gonna plan thinking will ll wait forward hope hoping want next upcoming soon tomorrow schedul goal "
    "dream aim consider intend decided",
    PREFERENCE: "love loving like enjoy favorite favourite fave prefer fan into passion obsess hate adore best "
    "interest hobb always",
    ATTACHMENT: "photo pic image snap screenshot attach here check look share",
    OPINION: "think thought believe should recommend suggest advice advise opinion guess agree important matter better "
    "try tip mean represent symboli remind",
    NEGATION: "not never no none nothing without cannot t",
}


_Cue = tuple[re.Pattern[str], int, bool]
"""A pattern, its bit, and whether it depends on case."""


@cache
def _cues(ascii_only: bool) -> tuple[re.Pattern[str], Sequence[_Cue]]:
    """Patterns of `segment_flags` for times and other cues.

    They are compiled on first use, since a search without changes to index needs none. Those for ASCII match
    lower-cased text, because ignoring case costs several times more.
    """
    flags = re.ASCII if ascii_only else re.IGNORECASE
    found = [(re.compile(pattern, flags), bit, False) for pattern, bit in _CASELESS_CUES]
    found += [(re.compile(pattern), bit, True) for pattern, bit in _CASED_CUES]
    return re.compile(cues.TIME, flags), found


@lru_cache(maxsize=4096)
def _possible_cues(hints: int, ascii_only: bool) -> Sequence[_Cue]:
    """The cues that a text with these hints may have; most sentences have few."""
    return [one for one in _cues(ascii_only)[1] if hints & one[1]]


#: Maximum number of cached stems per language; names and hashes would grow it without bound.
_MAX_KNOWN = 100_000

#: Maximum characters of sentences analysed for statements and by :func:`plain_words`.
LONGEST = 400

#: Number of characters of a segment searched for cues, which bounds the cost of a giant line.
_CUE_WINDOW = 4000


class AnalysedSegment(Struct, gc=False):
    """One segment as stored in the index.

    `start` and `end` are character offsets into the chunk's content; `author` is its speaker, if the text names one;
    `flags` is a bitmask of the constants above; `length` the number of terms (with repetitions); `terms` their
    frequencies.
    """

    start: int
    end: int
    author: str | None
    flags: int
    length: int
    terms: dict[str, int] = {}


def time_words(flags: int) -> int:
    """Number of time expressions of a segment with `flags`, from 0 to 3 (three or more)."""
    return (flags >> _TIME_SHIFT) & 3


_Value = TypeVar("_Value")


class Known(dict[str, _Value]):
    """A cache of a function's results by word.

    Unlike ``lru_cache``, a hit costs only a dictionary lookup: texts have thousands of words, most of them repeated.

    Args:
        most: maximum number of words; beyond it, the cache is cleared.
    """

    def __init__(self, make: Callable[[str], _Value], most: int) -> None:
        super().__init__()
        self._make = make
        self._most = most

    def __missing__(self, word: str) -> _Value:
        if len(self) >= self._most:
            self.clear()
        made = self[word] = self._make(word)
        return made


_HINT_PARTS = late(r"[^a-z0-9]+")
_CENTURIES = frozenset(("19", "20"))
_AFTER_DIGITS = frozenset(("st", "nd", "rd", "th", "am", "pm"))


@cache
def _hint_table() -> dict[str, int]:
    """Cue bits by hint word; the first three letters of each word are keys, too."""
    table: dict[str, int] = {}
    for bit, listed in _HINTS.items():
        for word in listed.split():
            table[word] = table.get(word, 0) | bit
            table.setdefault(word[:3], 0)
    return table


def _hints_of_digits(digits: str) -> int:
    # A year, or an hour before a space
    is_time = len(digits) <= 2 or (len(digits) == 4 and digits[:2] in _CENTURIES)
    return _DIGITS | _TIMES if is_time else _DIGITS


def _hints_of(word: str) -> int:
    """Cue bits that a text of ASCII words may have because of this word."""
    if word.isdigit():
        return _hints_of_digits(word)
    table, bits = _hint_table(), 0
    low = word.lower()
    if low[:3] not in table and len(low) > 2 and low.isalpha():
        return 0  # most words
    for part in (low,) if low.isalnum() else _HINT_PARTS.split(low):
        if part.isdigit():
            bits |= _hints_of_digits(part)
            continue
        if len(part) < 3 or part[:3] in table:
            for length in range(min(3, len(part)), len(part[:MAX_TERM]) + 1):
                bits |= table.get(part[:length], 0)
        if not part.isalpha():
            bits |= _DIGITS | _TIMES if part[-2:] in _AFTER_DIGITS else _DIGITS
    return bits


_hints = Known(_hints_of, 1 << 16).__getitem__


def segment_flags(text: str, words: Sequence[str] | None = None) -> int:
    """The cue bits of a segment's text (without its author), from its first characters.

    Args:
        words: raw words of these characters, if already known.
    """
    window = text[:_CUE_WINDOW]
    words = words_in(window) if words is None else words
    if "`" in window or not window.isascii():
        window = _plain(window)
    flags = 0
    if "?" in text or not text.isascii():
        if text.rstrip().rstrip("\"”')]*_ ").endswith(("?", "？", "؟", "⁇")):
            flags |= IS_QUESTION
        if "?" in window or "？" in window or "؟" in window:
            flags |= HAS_QUESTION
    ascii_only = window.isascii()
    lowered = window.lower()
    uncased = lowered if ascii_only else window
    hints = ~_DIGITS
    if ascii_only or all(map(str.isascii, words)):
        hints = reduce(or_, map(_hints, words), QUOTES)
        if hints & _DIGITS:
            flags |= NUMBER
            hints &= ~NUMBER
        if lowered[1:] != window[1:]:
            hints |= CAPITALS
        if not hints & (CAPITALS | _SITES):
            hints &= ~PLACE_CUE
    has_mark = '"' in window or "'" in window or "`" in window or "*" in window
    if not has_mark and (ascii_only or _OTHER_QUOTES.isdisjoint(window)):
        hints &= ~QUOTES  # every quotation has one of these marks
    for pattern, bit, is_cased in _possible_cues(hints & _CUE_BITS, ascii_only):
        if pattern.search(window if is_cased else uncased):
            flags |= bit
    if hints & _TIMES:
        flags |= min(3, len(_cues(ascii_only)[0].findall(uncased))) << _TIME_SHIFT
    return flags


_FIRST = late(cues.FIRST)


def says_i(text: str) -> bool:
    """Whether a text uses the first person ("I", "my", "we"); only `FIRST_PERSON`, without the other cues."""
    return bool(_FIRST.search(_plain(text[:_CUE_WINDOW])))


def _plain(text: str) -> str:
    """Normalise apostrophes, without changing the length of the text."""
    if text.isascii():
        return text.replace("`", "'")
    # A hundred times faster than str.translate if another character is not ASCII.
    for mark in _APOSTROPHES:
        text = text.replace(mark, "'")
    return text


def fold(text: str) -> str:
    """Case-fold, and remove accents of Latin, Greek and Cyrillic letters; other scripts are kept unchanged."""
    if text.isascii():
        return text.lower()
    decomposed = normalise_unicode("NFKD", text)
    kept: list[str] = []
    base_is_plain = False
    for char in decomposed:
        if unicodedata.combining(char):
            if not base_is_plain:
                kept.append(char)
            continue
        base_is_plain = char < "\u0530"
        kept.append(_PLAIN_LETTERS.get(char.lower(), char))
    return normalise_unicode("NFC", "".join(kept)).casefold()


@lru_cache(maxsize=512)
def plain_words(sentence: str) -> tuple[str, ...]:
    """The words of a sentence of ASCII words without inner punctuation; empty for any other sentence.

    Most sentences are of this kind, and splitting them at spaces is faster than a pattern. Cached,
    since type detection, the statements and the index split the same sentences.
    """
    found = tuple(sentence.rstrip(".!?").split()) if sentence.isascii() else ()
    return found if "".join(found).isalnum() else ()


def words_in(text: str) -> Sequence[str]:
    """Raw words of `text` in order (see `words`)."""
    if len(text) <= LONGEST and (plain := plain_words(text)):
        return plain
    if not text.isascii():
        return (_WORD if _HAS_MARK.search(text) is None else _MARKED_WORD).findall(_plain(text))
    found = text.rstrip(".!?").replace(", ", " ").split()
    return found if "".join(found).isalnum() else _WORD.findall(_plain(text))


def words(text: str) -> Iterator[tuple[str, int, int]]:
    """Raw words of `text` with character offsets: runs of letters and digits, with inner apostrophes."""
    pattern = _WORD if text.isascii() or _HAS_MARK.search(text) is None else _MARKED_WORD
    for match in pattern.finditer(_plain(text)):
        yield match.group(), match.start(), match.end()


class Analyser:
    """Converts text to terms for one language.

    `language` is a Snowball algorithm ("english", "german", …) or "none" for no stemming. An unknown name raises a
    `ValueError` that lists the choices. `stop` are its stop words, folded. Instances hold a bounded cache of stems and
    may be shared by threads.
    """

    def __init__(self, language: str = "english") -> None:
        self.language = language.strip().lower()
        self._stem_word = _stemmer(self.language)
        self._lock = Lock()
        self.stop = stop_words(self.language)
        self._function = function_words(self.language)
        self._forms = irregular_forms() if self.language == "english" else {}
        self._cache: dict[str, str] = {}
        self._known = Known(partial(self._terms_of, indexed=False), _MAX_KNOWN)
        self._known_indexed = Known(partial(self._terms_of, indexed=True), _MAX_KNOWN)

    def stem(self, word: str) -> str:
        """The term of a folded word: its irregular base form or its stem, truncated to `MAX_TERM` characters."""
        known = self._cache.get(word)
        if known is not None:
            return known
        cut = word[:MAX_TERM]
        if not cut.isalpha() and any(c.isdigit() for c in cut):
            stemmed = cut
        else:
            with self._lock:  # a stemmer object is not thread-safe
                stemmed = self._stem_word(self._forms.get(cut, cut))
        if len(self._cache) >= _MAX_KNOWN:
            self._cache.clear()
        self._cache[word] = stemmed
        return stemmed

    def terms(self, text: str, raw: Sequence[str] | None = None, *, indexed: bool = False) -> list[str]:
        """Terms of `text` in order, without stop words. Linear in its length; never raises.

        Args:
            raw: raw words of `text`, if already known.
            indexed: include the everyday words and single Han characters that an index has.
        """
        raw = words_in(text) if raw is None else raw
        if text.isupper():
            return [term for word in raw for term in self._terms_of(word, indexed, shouting=True)]
        known = self._known_indexed if indexed else self._known
        return list(chain.from_iterable(map(known.__getitem__, raw)))

    def indexed_terms(self, text: str) -> list[str]:
        """Terms of `text` in order, as an index has them."""
        return self.terms(text, indexed=True)

    def located_terms(self, text: str, *, indexed: bool = False) -> Iterator[tuple[str, int, int]]:
        """Terms of `text` with the offsets of their words (parts of a word share its offsets).

        With `indexed`, includes the everyday words and single Han characters that an index has.
        """
        shouting = text.isupper()
        known = self._known_indexed if indexed else self._known
        for word, start, end in words(text):
            # A run of words without spaces may be long, and hardly recurs.
            if shouting or len(word) > MAX_TERM:
                found = self._terms_of(word, indexed, shouting=shouting)
            else:
                found = known[word]
            for term in found:
                yield term, start, end

    def _terms_of(self, word: str, indexed: bool, *, shouting: bool = False) -> Sequence[str]:
        """Terms of one raw word; `shouting`: the whole text is in capitals."""
        left_out = self._function if indexed else self.stop
        if word.isascii():
            if word.isdigit():  # not cached, since numbers rarely recur
                return (word[:MAX_TERM],)
            if word.isalpha() and word.islower():  # most other words
                return () if word in left_out else (self.stem(word),)
        else:
            word = normalise_unicode("NFC", word)
        found: list[str] = []
        for raw in self._split(word, singles=indexed):
            folded = fold(raw)
            # "IT", "US", "WHO" in capitals are names, not function words, unless the whole text is in capitals.
            acronym = raw.isupper() and len(raw) > 1 and not shouting
            if folded in left_out and not acronym:
                continue
            if folded:
                found.append(self.stem(folded))
        return found

    def _split(self, word: str, singles: bool) -> Iterator[str]:
        """Split a raw word into pieces to be indexed: bigrams, identifier parts, possessive stripped."""
        if "\u2010" in word:
            pieces = _BROKEN.split(word)
            for piece in ("".join(pieces), *pieces):
                yield from self._split(piece, singles)
            return
        if not word.isascii() and SPACELESS.search(word):
            yield from _ngrams(word, singles)
            return
        if word.isascii() and word.isalpha() and (word.islower() or word.isupper() or word.istitle()):
            yield word
            return
        if _NUMERIC.match(word):
            yield word.replace(",", "") if _THOUSANDS.match(word) else word
            return
        if "." in word or "_" in word:
            pieces = re.split(r"[._]+", word)
            if len(pieces) > 1 and "'" not in word and (all(len(p) == 1 for p in pieces) or "_" in word):
                yield "".join(pieces) if "_" not in word else word
                if "_" not in word:  # "U.S.A" is one word
                    return
            elif len(pieces) > 1 and any(p.isdigit() for p in pieces):  # "v1.2.3"
                yield word
                return
            for piece in pieces:
                yield from self._split(piece, singles)
            return
        if "'" in word:
            head, _, tail = word.rpartition("'")
            if tail.lower() in {"s", "t", "re", "ve", "ll", "d", "m"}:
                if tail.lower() == "t" and head.lower().endswith("n"):
                    # didn't, can't: the negation is a stop word
                    yield head
                    return
                word = head
            if (elided := _ELIDED.match(word)) is not None:
                yield from self._split(word[elided.end() :], singles)
                return
            word = word.replace("'", "")
        parts = PARTS.findall(word)
        yield word
        if len(parts) > 1 and word.isascii() and any(c.isalpha() for c in word):
            yield from (p for p in parts if len(p) > 1 or p.isdigit())

    def analyse_segments(self, content: str, skip_before: int = 0, around: str = "") -> list[AnalysedSegment]:
        """Segments of `content` as stored in the index.

        The first `skip_before` characters repeat the end of the previous chunk and are not indexed again. `around` is
        the context of the whole content (headings before it, its title, its path). Each segment, except headings and
        turns, is also indexed with the terms of this context, of the headings above it, and of the header of its table
        or the terms that it explains, up to a limit.
        """
        analysed: list[AnalysedSegment] = []
        under = ""
        above = self.indexed_terms(around) if around else []
        below = dict.fromkeys(list(dict.fromkeys(above))[:_MAX_AROUND], 1)
        beside: dict[str, int] = {}
        headings: Headings | None = None
        for segment in split_segments(content):
            if segment.end <= skip_before:
                continue
            body = content[max(segment.body_start, skip_before) : segment.end]
            found = words_in(body)
            terms = self.terms(body, found, indexed=True)
            length = len(terms)
            counts = dict.fromkeys(terms, 1)
            are_repeated = len(counts) < length
            if segment.kind == "heading":
                headings = headings or Headings()
                headings.enter(content[segment.start : segment.end])
                terms_above = dict.fromkeys(chain(above, *map(self.indexed_terms, headings.texts())))
                below = dict.fromkeys(list(terms_above)[:_MAX_AROUND], 1)
            elif segment.kind != "turn":
                if segment.under != under:
                    under = segment.under
                    beside = dict.fromkeys(list(dict.fromkeys(self.indexed_terms(under)))[:_MAX_AROUND], 1)
                counts |= below
                if under:
                    counts |= beside
            if are_repeated:
                counts |= dict.fromkeys(terms, 0)
                for term in terms:  # takes half the time of a Counter
                    counts[term] += 1
            flags = segment_flags(body, found if len(body) <= _CUE_WINDOW else None)
            flags |= _KIND_FLAGS.get(segment.kind, 0)
            if not analysed:
                flags |= OPENS
            if length < 4:
                flags |= SHORT
            start = max(segment.start, skip_before)
            analysed.append(AnalysedSegment(start, segment.end, segment.author, flags, length, counts))
        return analysed


def _ngrams(word: str, singles: bool) -> Iterator[str]:
    """Character bigrams of runs without spaces in `word` (a run of one character as itself); other runs are kept whole.

    With `singles` also each Han character, since one of them can be a word.
    """
    position = 0
    for match in SPACELESS.finditer(word):
        if match.start() > position:
            yield word[position : match.start()]
        run = match.group()
        if len(run) == 1:
            yield run
        else:
            yield from (run[i : i + 2] for i in range(len(run) - 1))
            if singles:
                yield from (character for character in run if is_han(character))
        position = match.end()
    if position < len(word):
        yield word[position:]


def is_han(character: str) -> bool:
    """Whether one character is a Han character."""
    return "\u3400" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or character >= "\U00020000"


def _stemmer(language: str) -> Callable[[str], str]:
    """A stemming function for folded words, for use by one thread at a time."""
    if language == "none":
        return str
    if language not in Stemmer.algorithms():
        choices = ", ".join(sorted(Stemmer.algorithms()))
        raise InvalidConfig(f"search.language {language!r} is not known", hint=f"use one of {choices}, none")
    stem: Callable[[str], str] = Stemmer.Stemmer(language, 0).stemWord  # uncached: an analyser caches stems
    return stem


@lru_cache(maxsize=16)
def get_analyser(language: str = "english") -> Analyser:
    """The shared analyser of `language`."""
    return Analyser(language)

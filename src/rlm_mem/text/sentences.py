"""Sentences of running text, by rules: no model, linear time, any script that has full stops.

A full stop ends a sentence unless an abbreviation, an initial, a number or a lower-case letter after it says
otherwise. Ideographic stops need no space after them.
"""

from __future__ import annotations

import re
import unicodedata


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Followed by a name or a number, these never end a sentence.
_TITLES = _words(
    """
    mr mrs ms mx dr prof rev hon st sr jr mt gen col sgt capt lt maj cpl adm gov sen rep pres supt
    messrs mme mlle hr fr vs cf e.g i.e eg ie viz approx ca al eds trans dept univ assn bros
    """
)
# These do not end a sentence before a number: "No. 5", "Fig. 3", "Mar. 12", but "I said no. We left".
_NUMBERED = _words(
    """
    no nos nr fig figs eq eqs ch sec vol pp pg p art op ed jan feb mar apr jun jul aug sep sept oct
    nov dec mon tue tues wed thu thur thurs fri sat sun
    """
)
# These may end a sentence: they do where a capital follows that is not part of a name or number.
_SHORTENED = _words(
    """
    inc ltd co corp llc plc etc ave blvd rd esq u.s u.k e.u u.n a.m p.m ph.d m.d b.a m.a
    """
)

_END = re.compile(
    r"""(?:(?<![.!?…])[.!?…]++["'”’»)\]]*+(?=\s) | [。！？｡]+["'”’」』）)\]]*)""",
    re.VERBOSE,
)
_OPENERS = "\"'“‘«([{¿¡-–—*_ "
_LOOK_BACK = 24  # characters: longer than any abbreviation in the lists


def sentences(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Spans of the sentences of `text[start:end]`, without the space around them, in order.

    Every character that is not a space lies in exactly one span. Line breaks do not end a sentence here.
    """
    stop = len(text) if end is None else end
    spans: list[tuple[int, int]] = []
    begin = _skip_space(text, start, stop)
    for match in _END.finditer(text, begin, stop):
        if match.start() < begin or not _ends(text, match.start(), match.end(), begin, stop):
            continue
        spans.append((begin, match.end()))
        begin = _skip_space(text, match.end(), stop)
    if begin < stop:
        last = begin + len(text[begin:stop].rstrip())
        if last > begin:
            spans.append((begin, last))
    return spans


def _skip_space(text: str, position: int, stop: int) -> int:
    while position < stop and text[position].isspace():
        position += 1
    return position


def _ends(text: str, mark: int, after: int, begin: int, stop: int) -> bool:
    """Whether the stop at `mark` (with its closing quotes, up to `after`) ends the sentence from `begin`."""
    position = after
    while position < stop and (text[position].isspace() or text[position] in _OPENERS):
        position += 1
    if position >= stop or text[mark] in "。！？｡":
        return True
    following = text[position]
    if following.islower():
        return False  # "e.g. this", '"Why?" he asked', "wait... what"
    if text[mark] != "." or (mark + 1 < stop and text[mark + 1] == "."):
        return True  # ! ? … and ellipses before a capital
    word_start = mark
    floor = max(begin, mark - _LOOK_BACK)
    while word_start > floor and not text[word_start - 1].isspace():
        word_start -= 1
    word = text[word_start:mark].lstrip("\"'“‘«([{").lower()
    if word in _TITLES:
        return False
    if word in _NUMBERED:
        return not following.isdigit()
    if word in _SHORTENED:
        return not following.isdigit() and _is_opening(text, position, stop)
    if len(word) == 1 and word.isalpha():
        return word == "i" and _is_opening(text, position, stop)  # "J. Smith", but "you and I. The rest"
    # "1. First" at the start of the sentence is an enumeration.
    return not (word.isdigit() and word_start == begin and len(word) <= 3)


_OPENING_WORDS = _words(
    """
    the a an it he she they we you i this that these those there here his her its their our my your
    then but and so if when while after before since because although in on at for with as by from
    to what who where why how not no yes now later however also one some many most all each every
    both several
    """
)
_WORD = re.compile(r"[^\W\d_]+")


def _is_opening(text: str, position: int, stop: int) -> bool:
    match = _WORD.match(text, position, min(stop, position + _LOOK_BACK))
    return match is not None and match[0].lower() in _OPENING_WORDS


def units(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The sentences of a paragraph, never across lines that are independent of each other (a log, notes).

    Wrapped prose differs from independent lines by the lower-case letter that most of its lines begin with.
    """
    lines = [
        span for match in _LINE.finditer(text, start, end) if (span := _trim(text, *match.span())) is not None
    ]
    if len(lines) > 1:
        wrapped = sum(text[first].islower() for first, _ in lines[1:])
        if wrapped * 5 <= len(lines) - 1:
            return [span for line in lines for span in sentences(text, *line)]
    return sentences(text, start, end)


def pieces(text: str, start: int, end: int, limit: int) -> list[tuple[int, int]]:
    """Cut `text[start:end]` into spans of at most `limit` characters, at the best place near that length.

    Best first: a line break, a clause mark, a space, and in an unbroken run any place that does not split
    a character from its accents, an emoji sequence or a flag. Space at the cuts lies in no span.
    """
    spans: list[tuple[int, int]] = []
    position = _skip_space(text, start, end)
    while end - position > limit:
        cut = _cut(text, position, position + limit)
        if (span := _trim(text, position, cut)) is not None:
            spans.append(span)
        position = _skip_space(text, cut, end)
    if (span := _trim(text, position, end)) is not None:
        spans.append(span)
    return spans


_LINE = re.compile(r"[^\r\n]+")
_BREAKS = tuple(
    re.compile(pattern) for pattern in (r"[\r\n]", r"[,;:，；：、—–](?=\s|[^\x00-\x7f])|[。！？]", r"\s")
)
_LONGEST_CLUSTER = 32  # characters that a cut in an unbroken run may move back


def _cut(text: str, start: int, latest: int) -> int:
    """Where to cut `text[start:latest]`: the last place of the best kind in its second half."""
    middle = start + (latest - start) // 2
    for pattern in _BREAKS:
        last = None
        for match in pattern.finditer(text, middle, latest):
            last = match
        if last is not None:
            return last.end()
    for cut in range(latest, max(start, latest - _LONGEST_CLUSTER), -1):
        if not _joined(text, cut):
            return cut
    return latest


def _joined(text: str, cut: int) -> bool:
    """Whether the characters on both sides of `cut` make one character for the reader."""
    before, after = text[cut - 1], text[cut]
    if after < "\u0300":
        return before == "\r" and after == "\n"
    if before == _JOINER or after == _JOINER or unicodedata.category(after) in ("Mn", "Mc", "Me"):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True  # skin tones and flag tags
    return (
        _FLAG_FIRST <= before <= _FLAG_LAST and _FLAG_FIRST <= after <= _FLAG_LAST and _inside_flag(text, cut)
    )


_JOINER = "\u200d"
_FLAG_FIRST, _FLAG_LAST = "\U0001f1e6", "\U0001f1ff"


def _inside_flag(text: str, cut: int) -> bool:
    """Regional letters pair up from the left; a long row of them is only looked at for a while."""
    count = 0
    while count < 64 and cut - 1 - count >= 0 and _FLAG_FIRST <= text[cut - 1 - count] <= _FLAG_LAST:
        count += 1
    return count % 2 == 1


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    begin = _skip_space(text, start, end)
    if begin >= end:
        return None
    return begin, begin + len(text[begin:end].rstrip())

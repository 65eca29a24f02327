"""Sentences: where a full stop ends one, by rules without a model, in linear time, for any script with full stops."""

from __future__ import annotations

import re
from collections.abc import Callable

from rlm_mem.text.patterns import late, word_set

# Rules without a model, in linear time, for any script with full stops. A full stop ends a sentence unless an
# abbreviation, an initial, a number or a following lower-case letter indicates otherwise. Ideographic stops need no
# space.

# These never end a sentence before a name or number.
TITLES = word_set(
    """
    mr mrs ms mx dr prof rev hon st sr jr mt gen col sgt capt lt maj cpl adm gov sen rep pres supt
    messrs mme mlle hr fr sra dott ing inż mgr vs cf e.g i.e eg ie viz approx ca al eds trans dept univ assn bros
    """
)
# These do not end a sentence before a number: "No. 5", "Fig. 3", "Mar. 12"; but "I said no. We left".
_NUMBERED = word_set(
    """
    no nos nr fig figs eq eqs ch sec vol pp pg p art op ed jan feb mar apr jun jul aug sep sept oct
    nov dec mon tue tues wed thu thur thurs fri sat sun
    """
)
# These end a sentence only if a capitalised word of `_OPENING_WORDS` follows.
_SHORTENED = word_set(
    """
    inc ltd co corp llc plc etc ave blvd rd esq u.s u.k e.u u.n a.m p.m ph.d m.d b.a m.a
    """
)

_MONTH_AFTER_DAY = (
    r"(?:Jan(?:uar)?|Jänner|Feb(?:ruar)?|März|Apr(?:il)?|Mai|Juni?|Juli?|Aug(?:ust)?|Sept?(?:ember)?|Okt(?:ober)?"
    r"|Nov(?:ember)?|Dez(?:ember)?)\b"
)
"""A month as German writes it after the number of a day, whose stop ends no sentence: "12. Dezember"; a pattern."""

# Each pattern begins with a set of characters, so that the search skips to the next stop. A set with characters beyond
# Latin-1 takes a quarter of a millisecond to compile, and an ASCII text needs none.
_SPACED_END = r"""(?<=[.!?…؟।])(?<![.!?…].)[.!?…]*+["'”’»)\]]*+(?=\s)"""
_END = late(rf"""[.!?…؟।。！？｡](?:{_SPACED_END}|(?<=[。！？｡])[。！？｡]*["'”’」』）)\]]*)""", re.DOTALL)
_ASCII_END = late("[.!?]" + "".join(filter(str.isascii, _SPACED_END)), re.DOTALL)
space_at: Callable[[str, int, int], re.Match[str]] = re.compile(r"\s*").match  # type: ignore[assignment]  # never None
_OPENERS = "\"'“‘«([{¿¡-–—*_ "
_LOOK_BACK = 24  # characters; longer than any listed abbreviation


def sentences(
    text: str, start: int = 0, end: int | None = None, *, lower_case: bool = False
) -> list[tuple[int, int]]:
    """Spans of the sentences of `text[start:end]`, without surrounding space, in order.

    Every character that is not a space is in exactly one span. Line breaks do not end a sentence here.

    Args:
        lower_case: a sentence may begin with a lower-case letter, as in messages that are typed quickly.
    """
    stop = len(text) if end is None else max(start, end)
    spans: list[tuple[int, int]] = []
    begin = space_at(text, start, stop).end()
    for match in (_ASCII_END if text.isascii() else _END).finditer(text, begin, stop):
        mark, after = match.span()
        if mark < begin or not _ends(text, mark, after, begin, stop, lower_case):
            continue
        spans.append((begin, after))
        begin = space_at(text, after, stop).end()
    if begin < stop:
        last = begin + len(text[begin:stop].rstrip())
        if last > begin:
            spans.append((begin, last))
    return spans


def sentences_of_lines(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of a text in which line breaks end sentences, and any letter may begin one."""
    spans: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):  # a pattern would have to be compiled for the first search
        spans += sentences(text, start, start + len(line), lower_case=True)
        start += len(line) + 1
    return spans


def _ends(text: str, mark: int, after: int, begin: int, stop: int, lower_case: bool) -> bool:
    """Whether the stop at `mark` (with its closing quotes, up to `after`) ends the sentence that starts at `begin`."""
    position = after
    while position < stop and (text[position].isspace() or text[position] in _OPENERS):
        position += 1
    if position >= stop or text[mark] in "。！？｡":
        return True
    following = text[position]
    if following.islower() and not lower_case:
        return False  # "e.g. this", '"Why?" he asked', "wait... what"
    last = text[max(begin, mark - _LOOK_BACK) : mark].rsplit(None, 1)[-1:]
    whole = last[0] if last and not text[mark - 1].isspace() else ""
    word = whole.lstrip("\"'“‘«([{").lower()
    if following.islower():
        return len(word) > 1 and word.isalpha() and word not in TITLES | _SHORTENED
    if text[mark] != "." or (mark + 1 < stop and text[mark + 1] == "."):
        return True  # ! ? … and ellipses before a capital
    if word in TITLES:
        return False
    if word in _NUMBERED:
        return not following.isdigit()
    if word in _SHORTENED:
        return not following.isdigit() and _is_opening(text, position, stop)
    if len(word) == 1 and word.isalpha():
        return word == "i" and _is_opening(text, position, stop)  # "J. Smith", but "you and I. The rest"
    if whole[1:2] == "." and whole.isupper() and all(len(part) == 1 for part in whole.split(".")):
        return _is_opening(text, position, stop)  # "J.R. Smith"
    if word.isdigit() and len(word) <= 2 and _MONTH.match(text, position, stop):
        return False
    # "1. First" at the start of the sentence is an enumeration.
    return not (word.isdigit() and mark - len(whole) == begin and len(word) <= 3)


_OPENING_WORDS = word_set(
    """
    the a an it he she they we you i this that these those there here his her its their our my your
    then but and so if when while after before since because although in on at for with as by from
    to what who where why how not no yes now later however also one some many most all each every
    both several
    """
)
_WORD = late(r"[^\W\d_]+")
_MONTH = late(_MONTH_AFTER_DAY)


def _is_opening(text: str, position: int, stop: int) -> bool:
    match = _WORD.match(text, position, min(stop, position + _LOOK_BACK))
    return match is not None and match[0].lower() in _OPENING_WORDS

"""Who speaks in a line: "Name: words", "**Name:** words", "[10:32] name: words", chat exports.

A label such as "Note:" or "Step 2:" looks the same as a name; those that ordinary documents use are listed
here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_NAME = 40  # characters
MAX_LABEL = 120  # characters at the front of a line that can hold time stamp, name and colon


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Roles may be written in any case; other names need a capital, bold type or a time stamp.
ROLES = _words(
    """
    user assistant system human ai bot agent customer client operator developer tool
    speaker interviewer interviewee moderator guest therapist patient doctor nurse teacher
    student me you
    """
)

_LABELS = _words(
    """
    note notes nb todo fixme hint tip tips warning caution danger important attention example
    examples summary abstract overview introduction conclusion conclusions decision decisions
    rationale reason reasons context background status date dates time when where who why what how
    place location venue title subject topic agenda from to cc bcc re fwd fw sent author authors by
    tag tags category categories type kind name names email mail phone tel fax address url link
    links source sources see ref reference references description details detail definition usage
    input inputs output outputs result results outcome outcomes return returns args arguments raises
    yields params parameters parameter attributes error errors info debug warn trace fatal critical
    exception problem problems issue issues solution solutions cause causes fix fixes fixed added
    changed removed deprecated security fact facts preference preferences pattern patterns memory
    memories remember reminder update updates version versions goal goals objective objectives task
    tasks action actions plan plans next deadline due owner priority question questions answer
    answers q a pro pros con cons option options alternative alternatives idea ideas step steps
    phase part chapter section figure fig table appendix day week month year quarter sprint round
    item items list total totals price cost costs budget amount quantity ingredients instructions
    directions method methods materials requirements requirement prerequisites dependencies features
    feature benefits risks risk assumptions scope impact lesson lessons learned takeaway takeaways
    key keys value values default defaults monday tuesday wednesday thursday friday saturday sunday
    january february march april may june july august september october november december today
    tomorrow yesterday morning afternoon evening night ps p.s however also finally first second
    third lastly moreover quote favorite favourite favorites favourites hobby hobbies model support host port http
    https ftp file
    """
)
# "Step 2", "Figure 3", "Option B": a counted label; "Speaker 2" and "User 1" stay names.
_COUNTER = re.compile(r"(?:\d{1,4}|[A-Za-z]|[IVX]{1,5})\Z")
_PARTICLES = _words(
    """
    de da di del der den van von la le el al bin ibn of the and y und & dos das du
    """
)

_TIME = r"\d{1,2}[:.h]\d{2}(?:[:.]\d{2})?(?:\.\d+)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
_STAMP = rf"(?:{_DATE}(?:,\s?|\s|T)\s?{_TIME}(?:Z|[+-]\d\d:?\d\d)?|{_TIME}|{_DATE})"
_LINE = re.compile(
    rf"""(?P<stamp>\[{_STAMP}\]|\({_STAMP}\)|{_STAMP}(?=\s?[-–|]))?\s*(?:[-–|]\s+)?
    (?:
      <(?P<nick>[^\s<>][^<>\n]{{0,{MAX_NAME - 1}}})>(?=\s)
    | (?P<bold>\*\*|__)?(?P<name>[^\W\d_][^:：\n*<>"“”()\[\]{{}}|=;!?]{{0,{MAX_NAME - 1}}})
      (?P<inner>\*\*|__)?\s?(?P<late>\[{_STAMP}\]|\({_STAMP}\))?\s?(?:[:](?P<outer>\*\*|__)?(?=\s|$)|：)
    )""",
    re.VERBOSE,
)


class SpeakerLabel(NamedTuple):
    """A line's label: the speaker's name, and where the words begin (characters from the line's start)."""

    name: str
    body: int


def speaker_of(line: str) -> SpeakerLabel | None:
    """The label that opens `line` (no leading space; its first `MAX_LABEL` characters suffice), or None."""
    head = line[:MAX_LABEL]
    if ":" not in head and "：" not in head and not head.startswith(("<", "[", "(")):
        return None
    match = _LINE.match(head)
    if match is None:
        return None
    body = match.end()
    rest = line[body:].lstrip()
    if match["nick"]:
        # "<b> text" is markup, "<alice> text" a chat line: a time stamp tells them apart.
        return SpeakerLabel(match["nick"], len(line) - len(rest)) if match["stamp"] and rest else None
    name = match["name"].strip()
    bold = match["bold"] is not None
    if bold and not (match["inner"] or match["outer"]):
        return None
    marked = bold or match["stamp"] is not None or match["late"] is not None
    if not _is_name(name, marked) or (not rest and not marked and name.lower() not in ROLES):
        return None
    return SpeakerLabel(name, len(line) - len(rest) if rest else body)


def _is_name(name: str, marked: bool) -> bool:
    words = name.split()
    if not 1 <= len(words) <= 4:
        return False
    first, last = words[0].lower(), words[-1]
    if name.lower() in ROLES or first in ROLES:
        return len(words) == 1 or _COUNTER.match(last) is not None or all(map(_capital, words))
    if first in _LABELS or last.lower() in _LABELS:
        return False
    if len(words) == 2 and _COUNTER.match(last) and last.isdigit():
        return marked
    return marked or all(
        _capital(word) or (i > 0 and word.lower() in _PARTICLES) for i, word in enumerate(words)
    )


def _capital(word: str) -> bool:
    first = word[0]
    # Scripts without capitals (Japanese, Arabic, …) have no lower case to refuse.
    return first.isalpha() and not first.islower()

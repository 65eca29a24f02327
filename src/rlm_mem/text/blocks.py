"""Parses the structure of a text: headings, paragraphs, turns with speakers, list items, tables, code, sentences.

One pass over the lines, linear in the length of the text. Blocks are spans of the text, not copies, and
together they cover every character that is not a space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from rlm_mem.text.layout import TextLine, fences, is_prose, lines_of, tables
from rlm_mem.text.patterns import late, word_set
from rlm_mem.text.sentences import sentences, space_at

HEADING = "heading"
PARAGRAPH = "paragraph"
TURN = "turn"
ITEM = "item"
ROW = "row"  # one line of a table
HEADER = "header"  # a row of a table's header, or the line below it
DEFINITION = "definition"  # a term with its explanation, which is indented further
CODE = "code"
RULE = "rule"  # a line of dashes or stars between sections


class Block(Struct, frozen=True, gc=False):
    """One structural unit: `text[start:end]`, without surrounding line breaks.

    `body_start` is the beginning of the words, after a speaker's label or an item's marker. `author` is the speaker of
    the turn that the block is or continues. `depth` is the indent in columns. `apart`: an empty line precedes the
    block.
    """

    start: int
    end: int
    kind: str
    author: str | None
    body_start: int
    depth: int
    apart: bool


_LINE = late(r"[^\r\n]+")
_HEADING = late(r"#{1,6}\s+\S|\*\*[^*]{1,80}\*\*:?\Z")
_UNDERLINE = late(r"(?:=+|-{3,})\Z")
_RULE = late(r"(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|={3,})\Z")
_ITEM = late(r"(?:[-*+•‣◦]|(?P<number>\d{1,4})[.)]|\([a-z0-9]{1,3}\))\s+(?=\S)")
# A single line that begins with a letter and has no colon is a paragraph: other blocks and labels begin differently.
_PLAIN_LINE = late(r"[^\W\d_][^\r\n:：]*\Z")
_STOP = ".!?…。！？:\"'”’)]*"
_CODE_INDENT = 4  # columns (Markdown)
# Least indent of a paragraph below a heading or a term of a manual page, and beyond its term
_PROSE_INDENT = 2
_MAX_TITLE = 60  # characters of a heading in capitals
_MANUAL = late(r"(?P<page>[^\s()]+\(\w+\))[ \t]{2,}\S.*[ \t](?P=page)\Z")
"""The first line of a manual page, with the page's name at both ends."""


_KEPT_LENGTH = 8_000  # characters; most chunks are shorter
_LONGEST_KEPT = 8_000_000


def blocks(text: str) -> Sequence[Block]:
    """Split `text` into blocks, in order.

    The results of the last short texts and of the last long one are cached: chunking, type detection and the index
    parse the same chunk, and each hit of a search in a long chunk needs its headings.
    """
    parse = (
        _parse_cached if len(text) <= _KEPT_LENGTH else _parse_last if len(text) <= _LONGEST_KEPT else _parse
    )
    return parse(text)


def _parse(text: str) -> tuple[Block, ...]:
    if _PLAIN_LINE.match(text):
        return (Block(0, len(text.rstrip()), PARAGRAPH, None, 0, 0, False),)
    scanner = _Scanner(text)
    found = scanner.scan()
    return tuple(_inherit_authors(found) if scanner.turns >= 2 else found)


_parse_cached = lru_cache(maxsize=128)(_parse)
_parse_last = lru_cache(maxsize=1)(_parse)


class _Scanner:
    """Parses lines one by one and tracks the open block."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Block] = []
        self.kind: str | None = None  # of the open block
        self.first: TextLine | None = None
        self.last_end = 0
        self.body = 0
        self.author: str | None = None
        self.line_count = 0
        self.turns = 0
        self.indented = False  # the open block is indented prose
        self.columns: set[int] = set()  # indents of prose in this section
        self.lines = list(lines_of(text))

    def scan(self) -> list[Block]:
        text, lines = self.text, self.lines
        closing = fences(text, lines) if "```" in text or "~~~" in text else {}
        rows = tables(text, lines) if "|" in text or "==" in text else {}
        index = 0
        while index < len(lines):
            line = lines[index]
            until = closing.get(index)
            if until is not None:
                self.close()
                self.found.append(
                    Block(
                        line.left if line.indent else line.start,
                        lines[until].end,
                        CODE,
                        None,
                        line.start,
                        0,
                        line.apart,
                    )
                )
                index = until + 1
                continue
            if index in rows:
                self.open(HEADER if rows[index] else ROW, line)
                self.close()
            else:
                self.take(line, index)
            index += 1
        self.close()
        return self.found

    def take(self, line: TextLine, index: int) -> None:
        """Continue the open block with `line`, or close it and open the next one."""
        runs_on = self.kind == TURN or (self.kind == PARAGRAPH and line.indent < _PROSE_INDENT)
        if not line.apart and runs_on and self.text[line.start].isalpha():
            self._take_words(line, self.text[line.start : min(line.end, line.start + MAX_LABEL)])
            return  # in running text, only a speaker's label opens a block
        # The first characters determine the kind.
        text = self.text[line.start : min(line.end, line.start + 400)]
        whole = line.end - line.start <= 400
        if line.apart and self.kind is not None and not self._continues_after_gap(line, index):
            self.close()
        if self.kind == DEFINITION and self.first is not None and line.indent <= self.first.indent:
            self.close()
        item = _ITEM.match(text)
        if (
            whole
            and self.kind == PARAGRAPH
            and self.line_count == 1
            and _UNDERLINE.match(text)
            and not line.apart
        ):
            self.kind, self.last_end = HEADING, line.end
            self.close()
        elif whole and _RULE.match(text):
            self.open(RULE, line)
            self.close()
        elif item is not None and self._may_start_item(item, line):
            self.open(ITEM, line, body=line.start + item.end())
        elif whole and line.indent < _CODE_INDENT and self._is_heading(line, text):
            self.open(HEADING, line)
            self.close()
        elif text.startswith("|") and self.kind in (None, ROW):
            self.open(ROW, line)
        elif line.indent >= _PROSE_INDENT and self._take_indented(line, index):
            pass
        elif self.kind is None and line.indent >= _CODE_INDENT and (line.apart or not self.found):
            self.open(CODE, line)
        elif self.kind == CODE:
            if line.indent < _CODE_INDENT:
                self.open(PARAGRAPH, line)
            self.extend(line)
        else:
            self._take_words(line, text)

    def _is_heading(self, line: TextLine, text: str) -> bool:
        if self.kind is None and not line.indent and text[-1] == ")" and _MANUAL.match(text):
            return True
        return _HEADING.match(text) is not None and speaker_of(text) is None

    def _take_indented(self, line: TextLine, index: int) -> bool:
        """Continue or open a paragraph or definition with a line of indented prose; False if it is something else.

        A line that is indented further than those before it turns a paragraph into a definition, with those as its
        term.
        """
        first = self.first
        if self.kind == DEFINITION:
            if line.apart and self._is_term(index):
                self._open_prose(line)
            else:
                self.extend(line)
            return True
        if self.kind == PARAGRAPH and first is not None:
            if line.indent < first.indent + _PROSE_INDENT or (not self.indented and self.line_count > 1):
                if self.indented:
                    self.extend(line)
                return self.indented
            if not self.indented:
                term = self.text[first.start : first.end]
                if first.indent or len(term) > _MAX_TITLE or term[-1] in _STOP:
                    return False
                if term.isupper() and len(term) > 2:
                    self.kind = HEADING
                    self.close()
                    self._open_prose(line)
                    return True
                if not is_prose(self.text, self.lines, index):
                    return False
            self.kind, self.indented = DEFINITION, True
            self.columns.add(line.indent)
            self.extend(line)
            return True
        if self.kind is not None:
            return False
        if line.indent in self.columns or is_prose(self.text, self.lines, index):
            self._open_prose(line)
            return True
        return False

    def _open_prose(self, line: TextLine) -> None:
        self.open(PARAGRAPH, line)
        self.indented = True
        self.columns.add(line.indent)

    def _is_term(self, index: int) -> bool:
        """Whether a line begins a term of at most three lines with an indented explanation below it."""
        indent = self.lines[index].indent
        for line in self.lines[index + 1 : index + 4]:
            if line.apart or line.indent < indent:
                return False
            if line.indent >= indent + _PROSE_INDENT:
                return True
        return False

    def _take_words(self, line: TextLine, text: str) -> None:
        label = speaker_of(text) if self._may_start_turn(line) else None
        if label is not None:
            self.turns += 1
            self.open(TURN, line, body=line.start + label.body, author=label.name)
        elif self.kind is None or self.kind == ROW:
            self.open(PARAGRAPH, line)
        else:
            self.extend(line)

    def _continues_after_gap(self, line: TextLine, index: int) -> bool:
        """Whether an indented line after an empty one continues a list item, a definition or indented code."""
        if self.first is None:
            return False
        if self.kind == DEFINITION:
            return line.indent > self.first.indent
        if self.kind == ITEM:
            return line.indent > self.first.indent and not _ITEM.match(self.text, line.start)
        if self.kind != CODE or line.indent < _CODE_INDENT:
            return False
        # After an example, the prose of a manual page continues with less indent.
        return line.indent >= self.first.indent or not (
            line.indent in self.columns or is_prose(self.text, self.lines, index)
        )

    def _may_start_item(self, item: re.Match[str], line: TextLine) -> bool:
        if self.kind == CODE and line.indent >= _CODE_INDENT:
            return False
        # A number at the start of a wrapped line ("… in\n1984. Then") is not an item.
        return item["number"] is None or self.kind not in (PARAGRAPH, TURN) or item["number"] == "1"

    def _may_start_turn(self, line: TextLine) -> bool:
        """Whether a speaker's label is accepted: inside a running paragraph, only after a line that ends a sentence."""
        if self.kind != PARAGRAPH or self.last_end == 0:
            return self.kind != ITEM or line.indent == 0
        return self.text[self.last_end - 1] in _STOP

    def open(self, kind: str, line: TextLine, body: int | None = None, author: str | None = None) -> None:
        self.close()
        self.kind, self.first, self.last_end = kind, line, line.end
        self.body = line.start if body is None else body
        self.author, self.line_count, self.indented = author, 1, False

    def extend(self, line: TextLine) -> None:
        self.last_end = line.end
        self.line_count += 1

    def close(self) -> None:
        if self.kind is not None and self.first is not None:
            line = self.first
            # Leading indentation is significant in code and nested lists, so it is kept in the block.
            keeps = self.indented or self.kind in (CODE, ITEM)
            start = line.left if line.indent and keeps else line.start
            if not line.indent:
                self.columns.clear()
            self.found.append(
                Block(start, self.last_end, self.kind, self.author, self.body, line.indent, line.apart)
            )
        self.kind = None


def _inherit_authors(found: list[Block]) -> list[Block]:
    """In a dialogue, attribute paragraphs, lists and code after a turn to its speaker, until a heading."""
    author: str | None = None
    result: list[Block] = []
    for block in found:
        if block.kind == TURN:
            author = block.author
        elif block.kind in (HEADING, RULE):
            author = None
        elif author is not None:
            block = replace(block, author=author)
        result.append(block)
    return result


# --- speakers -------------------------------------------------------------------------------------------------------

MAX_NAME = 40  # characters
MAX_LABEL = 120  # maximum characters of a time stamp, name and colon at the start of a line


# Labels such as "Note:" or "Step 2:" look like names, so those of ordinary documents are listed. Roles may be written
# in any case; other names need a capital, bold type or a time stamp.
ROLES = word_set(
    """
    user assistant system human ai bot agent customer client operator developer tool
    speaker interviewer interviewee moderator guest therapist patient doctor nurse teacher
    student me you
    """
)

_LABELS = word_set(
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
_NO_NAMES = _LABELS - ROLES
# "Step 2", "Figure 3", "Option B" are numbered labels; "Speaker 2" and "User 1" are names.
_COUNTER = late(r"(?:\d{1,4}|[A-Za-z]|[IVX]{1,5})\Z")
_PARTICLES = word_set(
    """
    de da di del der den van von la le el al bin ibn of the and y und & dos das du
    """
)

_TIME = r"\d{1,2}[:.h]\d{2}(?:[:.]\d{2})?(?:\.\d+)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
_STAMP = rf"(?:{_DATE}(?:,\s?|\s|T)\s?{_TIME}(?:Z|[+-]\d\d:?\d\d)?|{_TIME}|{_DATE})"


def _label(stamp: str) -> re.Pattern[str]:
    return late(
        rf"""(?P<stamp>\[{stamp}\]|\({stamp}\)|{stamp}(?=\s?[-–|]))?\s*(?:[-–|]\s+)?
            (?:
              <(?P<nick>[^\s<>][^<>\n]{{0,{MAX_NAME - 1}}})>(?=\s)
            | (?P<bold>\*\*|__)?(?P<name>[^\W\d_][^:：\n*<>"“”()\[\]{{}}|=;!?]{{0,{MAX_NAME - 1}}})
              (?P<inner>\*\*|__)?\s?(?P<late>\[{stamp}\]|\({stamp}\))?\s?(?:[:](?P<outer>\*\*|__)?(?=\s|$)|：)
            )""",
        re.VERBOSE,
    )


_LABEL = _label(_STAMP)
_LABEL_WITHOUT_STAMP = _label("(?!)")
"""The pattern without time stamps, which take long to compile."""


class SpeakerLabel(Struct, frozen=True, gc=False):
    """The label of a line: the speaker's name, and the offset of the words after it."""

    name: str
    body: int


def speaker_of(line: str) -> SpeakerLabel | None:
    """The speaker's label at the start of `line` (without leading space; `MAX_LABEL` characters suffice), or None."""
    head = line[:MAX_LABEL]
    if ":" not in head and "：" not in head and not head.startswith(("<", "[", "(")):
        return None
    if head.partition(" ")[0].rstrip(":：").lower() in _NO_NAMES:
        return None
    stamped = head[0].isdecimal() or "[" in head or "(" in head
    match = _LABEL.match(head) if stamped else _LABEL_WITHOUT_STAMP.match(head)
    if match is None:
        return None
    body = match.end()
    rest = line[body:].lstrip()
    if match["nick"]:
        # "<b> text" is markup, "<alice> text" a chat line; only the latter has a time stamp.
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
    # Scripts without capitals (Japanese, Arabic, …) have no lower-case letters to reject.
    return first.isalpha() and not first.islower()


# --- turns ----------------------------------------------------------------------------------------------------------


class Said(Struct, frozen=True, gc=False):
    """One turn, `text[start:end]`; its words begin at `body`, after the label. `speaker` is None in a plain note."""

    start: int
    end: int
    body: int
    speaker: str | None


def said_in(text: str) -> list[Said]:
    """Split `text` into turns, in order; a text that is not a dialogue is one piece without a speaker. Linear time.

    A text is a dialogue if it begins with a speaker's label or contains two of them. Paragraphs, lists and code after a
    turn belong to it until the next turn or a heading.
    """
    found = blocks(text)
    labels = sum(block.kind == TURN for block in found)
    if not found or not (labels > 1 or found[0].kind == TURN):
        kept = text.strip()
        start = len(text) - len(text.lstrip())
        return [Said(start, start + len(kept), start, None)] if kept else []
    turns: list[Said] = []
    apart = True  # the next block belongs to no turn
    for block in found:
        if block.kind == TURN:
            turns.append(Said(block.start, block.end, block.body_start, block.author))
            apart = False
        elif block.kind in (HEADING, RULE):
            turns.append(Said(block.start, block.end, block.start, None))
            apart = True
        elif apart:
            turns.append(Said(block.start, block.end, block.start, None))
        else:
            turns[-1] = replace(turns[-1], end=block.end)
    return turns


def units(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
    """The sentences of a paragraph, not crossing lines that are independent of each other (a log, notes).

    In wrapped prose, unlike independent lines, more than a fifth of the further lines begin with a lower-case letter.
    """
    if end - start > _KEPT_LENGTH or (start and text[start - 1] in _STOP):
        return _units.__wrapped__(text, start, max(start, end))
    spans = _units(text[start:end], 0, max(0, end - start))
    if len(spans) == 1:  # as of most list items and headings
        return ((start + spans[0][0], start + spans[0][1]),)
    return [(start + first, start + last) for first, last in spans] if start else spans


@lru_cache(maxsize=512)
def _units(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
    """Cached `units`, since chunking, type detection, the index and the statements split the same paragraph."""
    if text.find("\n", start, end) < 0 and text.find("\r", start, end) < 0:
        return tuple(sentences(text, start, end))
    lines = [
        span for match in _LINE.finditer(text, start, end) if (span := _trim(text, *match.span())) is not None
    ]
    if len(lines) > 1:
        wrapped = sum(text[first].islower() for first, _ in lines[1:])
        if wrapped * 5 <= len(lines) - 1:
            return tuple(span for line in lines for span in sentences(text, *line))
    return tuple(sentences(text, start, end))


def pieces(text: str, start: int, end: int, limit: int) -> list[tuple[int, int]]:
    """Split `text[start:end]` into spans of at most `limit` characters, at the best place near that length.

    In order of preference: a line break, a punctuation mark, a space, and in an unbroken run any place that does not
    separate a character from its accents, an emoji sequence or a flag. Space at the cuts is in no span.
    """
    spans: list[tuple[int, int]] = []
    position = space_at(text, start, end).end()
    while end - position > limit:
        cut = _cut(text, position, position + limit)
        if (span := _trim(text, position, cut)) is not None:
            spans.append(span)
        position = space_at(text, cut, end).end()
    if (span := _trim(text, position, end)) is not None:
        spans.append(span)
    return spans


def one_line(text: str, longest: int) -> str:
    """The text on one line, truncated with `…`."""
    # More than the limit, since collapsing white space shortens the text.
    text = " ".join(text[: 4 * longest].split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


_BREAKS = tuple(
    late(pattern) for pattern in (r"[\r\n]", r"[,;:，；：、—–](?=\s|[^\x00-\x7f])|[。！？]", r"\s")
)
_MAX_CLUSTER = 32  # maximum characters by which a cut in an unbroken run moves back


def _cut(text: str, start: int, latest: int) -> int:
    """The best place to cut `text[start:latest]`, in its second half."""
    middle = start + (latest - start) // 2
    for pattern in _BREAKS:
        last = None
        for match in pattern.finditer(text, middle, latest):
            last = match
        if last is not None:
            return last.end()
    for cut in range(latest, max(start, latest - _MAX_CLUSTER), -1):
        if not _joined(text, cut):
            return cut
    return latest


def _joined(text: str, cut: int) -> bool:
    """Whether the characters on both sides of `cut` form one visible character."""
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
    """Whether `cut` splits a flag: regional letters pair up from the left; a bounded number of them is examined."""
    count = 0
    while count < 64 and cut - 1 - count >= 0 and _FLAG_FIRST <= text[cut - 1 - count] <= _FLAG_LAST:
        count += 1
    return count % 2 == 1


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    begin = space_at(text, start, end).end()
    if begin >= end:
        return None
    return begin, begin + len(text[begin:end].rstrip())

"""Renders remembered Markdown as HTML, without HTML from the text and without external resources.

HTML in the text is escaped, images are named instead of shown, and only links to the web work, and those between notes,
which search for the note. Length, nesting depth
and the size of tables are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from rlm_mem.dashboard.words import WIKI_LINK, address, first_line, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MAX_RENDERED_CHARS = 20_000
"""Number of characters that are rendered; the source shows the rest."""
_MAX_NESTING = 12
"""Maximum nesting of quotes and lists, two levels per list; bounds the time for nested brackets."""
_TEASER_LINES = 6
_CELLS = 20_000
"""Maximum lines times columns of rendered tables, since the parser pads short rows to the widest."""
_WEB = ("https://", "http://", "mailto:")
_CONTAINERS = ("blockquote_open", "list_item_open")
_PLAIN = frozenset({"paragraph_open", "paragraph_close", "inline", "text", "softbreak", "hardbreak"})


@dataclass(frozen=True)
class Rendered:
    """A text rendered as HTML.

    Attributes:
        html: empty if the text has no Markdown or cannot be rendered.
        note: which part of the text is not rendered and why; empty otherwise.
    """

    html: Markup
    note: str = ""


def render(text: str) -> Rendered:
    """Render Markdown as HTML; takes well under a second for any text."""
    part = text
    if len(text) > MAX_RENDERED_CHARS:
        part = text[:MAX_RENDERED_CHARS]
        end = part.rfind("\n") + 1
        part = part[:end] if end > MAX_RENDERED_CHARS // 2 else part
    shown = visible(part)
    lines = shown.count("\n") + 1
    widest = max((line.count("|") for line in shown.split("\n")), default=0)
    parser = _parser(tables=lines * widest <= _CELLS)
    tokens = parser.parse(shown)
    if all(token.type in _PLAIN for token in _walk(tokens)):
        return Rendered(Markup())
    # The parser would drop deeper levels, so the source is shown instead.
    if any(token.type in _CONTAINERS and token.level >= _MAX_NESTING - 1 for token in tokens):
        return Rendered(Markup(), "This text is nested too deeply to be rendered, so its source is shown.")
    _restrict(tokens)
    # Entities may have produced control characters, so they are made visible again.
    html = Markup(visible(parser.renderer.render(tokens, parser.options, {})))
    if len(part) == len(text):
        return Rendered(html)
    return Rendered(
        html,
        f"Only the first {len(part):,} of {len(text):,} characters are rendered; the source is complete.",
    )


def teaser(text: str, longest: int, shown: Callable[[str], Markup] = escape) -> Markup:
    """The beginning of a text as one line per item or paragraph, with emphasis and code but no links.

    Args:
        longest: maximum number of characters.
        shown: escapes and highlights a piece of plain text.
    """
    part = visible(text[: longest * 2])
    if not _MARKS.search(part):
        return shown(first_line(part, longest))
    if shown is escape:
        return _escaped_teaser(part, longest)
    return _teaser(part, longest, shown)


@lru_cache(maxsize=2_000)
def _escaped_teaser(part: str, longest: int) -> Markup:
    return _teaser(part, longest, escape)


def _teaser(part: str, longest: int, shown: Callable[[str], Markup]) -> Markup:
    begun = _beginning(part)
    made: list[Markup] = []
    room = longest
    for start, pieces in _lines(_parser(tables=begun.count("|") <= _CELLS).parse(begun)):
        line = [escape(start)]
        for kind, words in pieces:
            words, room = words[:room] + ("…" if len(words) > room else ""), room - len(words)
            piece = shown(visible(words))  # again, since entities may have produced such characters
            line.append(Markup("<{0}>{1}</{0}>").format(Markup(kind), piece) if kind else piece)
            if room <= 0:
                break
        made.append(Markup("").join(line))
        if room <= 0:
            break
    else:
        if len(begun) < len(part.rstrip()):
            made.append(Markup("…"))
    return Markup("<br>").join(made) if made else shown(first_line(part, longest))


def _beginning(part: str) -> str:
    """The first non-blank lines, which are all that a list shows; parsing less text saves time."""
    kept = 0
    lines = part.splitlines(keepends=True)
    for number, line in enumerate(lines):
        kept += bool(line.strip())
        if kept == _TEASER_LINES:
            return "".join(lines[: number + 1])
    return part


_MARKS = re.compile(r"[*_`#\[|>~]|^[ \t]{0,8}(?:[-+]|\d{1,9}[.)])\s", re.MULTILINE)
"""A text without a match has no Markdown."""
_BOX = re.compile(r"\[([ xX])\](?=\s|$)")
"""The box of a task at the beginning of a list item."""
_TAGS = {"strong": "strong", "em": "em", "s": "s"}


def _lines(tokens: Sequence[Token]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each paragraph, heading, item or row: its marker, and its pieces as (tag or empty, plain text)."""
    sign, within, row = "", "", list[tuple[str, str]]()
    for token in tokens:
        if token.type == "list_item_open":
            sign = f"{token.info}. " if token.info else "• "
        elif token.type in ("heading_open", "tr_open"):
            within = token.tag
        elif token.type in ("heading_close", "tr_close"):
            if row:
                yield "", row
            within, row = "", []
        elif token.type == "inline" and within == "tr":
            row += [*([("", " · ")] if row else []), *_pieces(token)]
        elif token.type == "inline" and token.content.strip():
            yield sign, [("strong" if within and not tag else tag, words) for tag, words in _pieces(token)]
            sign = ""
        elif token.type == "fence" and token.content.strip():
            yield sign, [("code", first_line(token.content))]
            sign = ""


def _pieces(inline: Token) -> list[tuple[str, str]]:
    tags: list[str] = []
    made: list[tuple[str, str]] = []
    for token in inline.children or ():
        name = token.type.removesuffix("_open").removesuffix("_close")
        if name in _TAGS:
            tags = tags[:-1] if token.type.endswith("_close") else [*tags, _TAGS[name]]
        elif token.type in ("softbreak", "hardbreak"):
            made.append(("", " "))
        elif token.type == "code_inline":
            made.append(("code", token.content))
        elif token.type == "image":
            made.append(("", f"[image: {token.content}]"))
        elif token.content:
            made.append((tags[-1] if tags else "", token.content))
    return made


@cache
def _parser(*, tables: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    made = MarkdownIt(
        "js-default", {"html": False, "linkify": False, "breaks": True, "maxNesting": _MAX_NESTING}
    )
    made.inline.ruler.before("link", "wiki_link", _wiki_link)
    made.core.ruler.push("tasks", _mark_tasks)
    # An indented line of a remembered text is rarely code.
    made.disable("code")
    if not tables:
        made.disable("table")
    made.add_render_rule("image", _image)
    made.add_render_rule("table_open", _table_open)
    made.add_render_rule("table_close", _table_close)
    return made


def _wiki_link(state: StateInline, silent: bool) -> bool:
    link = WIKI_LINK.match(state.src, state.pos, state.posMax)
    if link is None:
        return False
    if not silent:
        opened = state.push("link_open", "a", 1)
        opened.attrs, opened.meta = {"href": address("/memories", q=link[1].strip())}, {"note": True}
        state.push("text", "", 0).content = link[2] or link[1]
        state.push("link_close", "a", -1)
    state.pos = link.end()
    return True


def _mark_tasks(state: StateCore) -> None:
    """Show the box of a task as a character."""
    for item, token in zip(state.tokens, state.tokens[2:], strict=False):
        if item.type != "list_item_open" or token.type != "inline" or not token.children:
            continue
        text = token.children[0]
        if text.type == "text" and (box := _BOX.match(text.content)):
            text.content = f"{'☐' if box[1] == ' ' else '☑'}{text.content[box.end() :]}"


def _walk(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _restrict(tokens: Sequence[Token]) -> None:
    """Remove from the tokens what the content policy forbids, and shift headings below the page title."""
    highest = min((int(token.tag[1:]) for token in tokens if token.type == "heading_open"), default=1)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            # Below the title of the page, whatever the highest level in the text.
            token.tag = f"h{min(6, int(token.tag[1:]) - highest + 2)}"
        elif token.type in ("th_open", "td_open") and "style" in token.attrs:
            token.attrs = {"class": str(token.attrs["style"]).replace("text-align:", "to-")}
        elif token.type == "fence":
            token.info = ""
        leads: list[bool] = []
        for child in token.children or ():
            if child.meta.get("note"):
                leads.append(True)
            elif child.type == "link_open":
                target = str(child.attrs.get("href", ""))
                leads.append(target.lower().startswith(_WEB))
                if leads[-1]:
                    child.attrs = {"href": target, "title": target, "rel": "noopener noreferrer nofollow"}
                else:
                    child.tag, child.attrs = "span", {"title": target}
            elif child.type == "link_close" and not leads.pop():
                child.tag = "span"


def _image(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> Markup:
    token = tokens[index]
    words = renderer.renderInlineAsText(token.children or [], options, env)
    return Markup('<span class="quiet">[image: {} {}]</span>').format(words, token.attrs.get("src", ""))


def _table_open(_: RendererHTML, *__: Any) -> str:
    return '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>\n'


def _table_close(_: RendererHTML, *__: Any) -> str:
    return "</table></div>\n"

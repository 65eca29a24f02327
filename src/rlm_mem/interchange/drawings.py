"""The text of a drawing in SVG: its title, its description and its labels, without the markup."""

from __future__ import annotations

from xml.parsers import expat

BROKEN = "a drawing whose text cannot be read: it is no well-formed XML, or declares long or nested entities"
"""Reason for a drawing for which ``text_of_drawing`` returns None."""

_LONGEST_ENTITY = 200  # characters
_TEXTS = frozenset({"title", "desc", "text"})


def is_drawing(name: str) -> bool:
    """Whether a file of this name is a drawing in SVG."""
    return name.lower().endswith(".svg")


def text_of_drawing(data: bytes | str) -> str | None:
    """The texts of a drawing, each on a line and once; None if it is not well-formed, or could expand to any length.

    Editors declare entities for names of XML; nested and long ones, and texts that grow by them, are refused.
    """
    lines: list[str] = []
    parts: list[str] = []
    depth = 0  # of elements, from the outermost one with text
    size = 0  # of the texts

    def start(name: str, _attributes: object) -> None:
        nonlocal depth
        if depth or name.rpartition(":")[2] in _TEXTS:
            depth += 1
            parts.append(" ")

    def end(_name: str) -> None:
        nonlocal depth
        if not depth:
            return
        depth -= 1
        parts.append(" ")
        if not depth:
            lines.append(" ".join("".join(parts).split()))
            parts.clear()

    def said(text: str) -> None:
        nonlocal size
        if depth:
            parts.append(text)
            size += len(text)
            if size > len(data):
                raise expat.ExpatError("the text grows by its entities")

    def declared(_name: str, is_parameter: bool, value: str | None, *_: object) -> None:
        if is_parameter or value is None or "&" in value or len(value) > _LONGEST_ENTITY:
            raise expat.ExpatError("a long, nested or external entity is declared")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = said, declared
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError):  # ValueError: an encoding that is not known
        return None
    return "\n".join(dict.fromkeys(filter(None, lines)))

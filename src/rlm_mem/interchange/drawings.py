"""The text of a drawing in SVG: its title, its description and its labels, without the markup."""

from __future__ import annotations

from xml.parsers import expat

_TEXTS = frozenset({"title", "desc", "text"})


def is_drawing(name: str) -> bool:
    """Whether a file of this name is a drawing in SVG."""
    return name.lower().endswith(".svg")


def text_of_drawing(data: bytes | str) -> str:
    """The texts of a drawing, each on a line and once; empty if it has none, or is not well-formed.

    Entities that the drawing declares are refused, since they could expand to any length.
    """
    lines: list[str] = []
    parts: list[str] = []
    depth = 0  # of elements, from the outermost one with text

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
        if depth:
            parts.append(text)

    def refuse(*_declared: object) -> None:
        raise expat.ExpatError("an entity is declared")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = said, refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError):  # ValueError: an encoding that is not known
        return ""
    return "\n".join(dict.fromkeys(filter(None, lines)))

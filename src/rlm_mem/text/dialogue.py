"""What was said in a text and by whom: whole turns, however many paragraphs and lists one has."""

from __future__ import annotations

from typing import NamedTuple

from rlm_mem.text.blocks import HEADING, RULE, TURN, blocks

__all__ = ["Said", "said_in"]


class Said(NamedTuple):
    """One turn, `text[start:end]`, whose words begin at `body` after the label; `speaker` is None in a plain note."""

    start: int
    end: int
    body: int
    speaker: str | None


def said_in(text: str) -> list[Said]:
    """The turns of `text` in order; a text that is no dialogue is one piece without a speaker. Linear time.

    A text is a dialogue when it begins with a speaker's label or holds two of them. What follows a turn (paragraphs,
    lists, code) belongs to it until the next turn or a heading.
    """
    found = blocks(text)
    labels = sum(block.kind == TURN for block in found)
    if not found or not (labels > 1 or found[0].kind == TURN):
        kept = text.strip()
        start = len(text) - len(text.lstrip())
        return [Said(start, start + len(kept), start, None)] if kept else []
    turns: list[Said] = []
    apart = True  # what comes next belongs to no turn
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
            turns[-1] = turns[-1]._replace(end=block.end)
    return turns

"""The delimiters that mark stored text as data in a prompt, and how text is kept from ending or imitating them.

Text from the memory, from programs and from users stands between ``<tag>`` lines. Inside it, whatever could be read
as the end of such a block, as a block of its own or as the fence of a program gets a backslash: ``<\\/output>``,
```` `\\`\\`repl ````. One pass over the text, in time linear in its length.
"""

from __future__ import annotations

import re

__all__ = ["breaking", "unbroken"]

_BRACKETS = "<＜﹤‹〈〈⟨˂ᐸ≺❮❬"
_SLASHES = "/／⁄∕⧸╱"
_GAP = r"[\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*+"
_NAMES = (
    "question|store|hits|output|error|context|earlier|system|user|assistant|repl|python|code|program|"
    "tool_code|tool_call"
)
# Every closing tag, whatever its name is made of; opening ones only where the name is one of ours.
_AFTER = rf"{_GAP}(?:[{_SLASHES}]|(?:{_NAMES})\b)"
_TAG = re.compile(rf"[{_BRACKETS}](?={_AFTER})", re.IGNORECASE)
_BROKEN_TAG = re.compile(rf"([{_BRACKETS}])\\(?={_AFTER})", re.IGNORECASE)
_TICKS = "`｀ˋ"
_FENCE = re.compile(rf"[{_TICKS}]{{3,}}+|~{{3,}}+")
_BROKEN_FENCE = re.compile(rf"(?<=[{_TICKS}~])\\(?=[{_TICKS}~])")


def breaking(text: str) -> str:
    """Return ``text`` with a backslash in each tag and fence, so that it can neither end nor begin a block."""
    return _FENCE.sub(lambda run: "\\".join(run[0]), _TAG.sub(r"\g<0>\\", text))


def unbroken(text: str) -> str:
    """Undo :func:`breaking`, for a reader that is no language model."""
    return _BROKEN_FENCE.sub("", _BROKEN_TAG.sub(r"\1", text))

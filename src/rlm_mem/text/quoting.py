"""Quotes stored text for an agent, so that it neither passes for words of the agent's host nor hides any.

Hosts set their own words apart by tags such as ``<system-reminder>`` or ``<|im_start|>``. Characters that no screen
shows can carry a text that only a model reads, and a picture of a web address is loaded where an agent repeats it.
"""

from __future__ import annotations

import re

_OF_HOSTS = r"<(?=/?[A-Za-z][A-Za-z0-9]{0,40}[-_:]|/?\|)"
"""The beginning of a tag that programs use rather than authors of text."""
_TAG = re.compile(rf"{_OF_HOSTS}|<(?=/[A-Za-z])|(?<!\w)<(?=[A-Za-z!?])")
"""The beginning of any tag, but of no comparison and no type parameter (``list<int>``)."""
_HOSTS_TAG = re.compile(_OF_HOSTS)
_PICTURE = re.compile(r"!(?=\[[^\]\n]{0,300}\][(\[])")
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e01ef]"
)
"""Control characters, overrides of the direction of writing, and characters without a shape; not those that join."""


def quoted(text: str) -> str:
    """Return a text for the context of an agent: unseen characters are left out, tags and pictures are broken."""
    return _PICTURE.sub("! ", _TAG.sub("< ", _UNSEEN.sub("", text)))


def escaped(data: str) -> str:
    """Return the text of some JSON with unseen characters and tags of hosts as escapes: it means the same."""
    return _HOSTS_TAG.sub(r"\\u003c", _UNSEEN.sub(_escape, data))


def _escape(found: re.Match[str]) -> str:
    return "".join(f"\\u{int.from_bytes(unit, 'big'):04x}" for unit in _units(found[0].encode("utf-16-be")))


def _units(data: bytes) -> list[bytes]:
    return [data[at : at + 2] for at in range(0, len(data), 2)]

"""The types of chunks and links: the built-in ones, and a registry of those that a store adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rlm_mem.errors import InvalidChunk, InvalidLink

_TYPE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")


def check_type_name(name: object) -> str:
    """Return ``name`` if it can name a chunk or link type; raises InvalidChunk."""
    if isinstance(name, str) and _TYPE_NAME.match(name):
        return name
    raise InvalidChunk(f"type name {shown(name)} must be lower-case letters, digits, _ and -")


def shown(value: object) -> str:
    """A short repr for error messages."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def as_list(value: Iterable[str] | str) -> list[str]:
    """A list of texts; a single text becomes a list of one, never of its characters."""
    return [value] if isinstance(value, str) else list(value)


CHUNK_TYPES = ["preference", "fact", "pattern", "decision", "note"]
"""The built-in chunk types; more are registered per store."""

AUTO_LINK_TYPES = ["context_of", "follows", "related_to"]
"""Links that the AutoLinker makes (docs/spec/links.md, Types); ``SIMILAR_TO`` besides."""

MANUAL_LINK_TYPES = ["supports", "contradicts"]
"""Links that a person or a model makes; ALL_LINK_TYPES has more."""

SIMILAR_TO = "similar_to"
"""Equal after normalising case, space and punctuation."""


SUPERSEDES = "supersedes"
"""The source replaces the target, which is out of date."""


@dataclass(frozen=True)
class LinkType:
    """A built-in link type.

    Attributes:
        name: as written in a link.
        outgoing: what the link means for its source, as a phrase in which "it" is the target.
        incoming: the same for its target, with "it" for the source.
        stance: whether the source is evidence ``for`` the target or ``against`` it; None: neither, as for links
            made by rules.
        weight: share of a chunk's weight that REASON passes on along the link, 0-1; None: as for registered types.
    """

    name: str
    outgoing: str
    incoming: str
    stance: Literal["for", "against"] | None = None
    weight: float | None = None


LINK_TYPES = (
    LinkType("context_of", *("is of the same conversation",) * 2, weight=0.2),
    LinkType("follows", "was said after it", "was said before it", weight=0.3),
    LinkType("related_to", *("shares tags with it",) * 2, weight=0.3),
    LinkType(SIMILAR_TO, *("says the same in nearly the same words",) * 2, weight=0.5),
    LinkType("supports", "supports it", "is supported by it", "for", 1.0),
    LinkType("contradicts", "contradicts it", "is contradicted by it", "against", 1.0),
    LinkType("elaborates", "elaborates on it", "is elaborated on by it", "for", 1.0),
    LinkType("example_of", "is an example of it", "has it as an example", "for", 0.9),
    LinkType(SUPERSEDES, "replaces it", "was replaced by it", weight=0.5),
    LinkType("derived_from", "was made from it", "is what it was made from"),
)
"""Every built-in link type (docs/spec/links.md, Types); add a type by adding a row."""

ALL_LINK_TYPES = [kind.name for kind in LINK_TYPES]
"""Names of the built-in link types."""

STATED_LINK_TYPES = [kind.name for kind in LINK_TYPES if kind.stance]
"""Types with which a person or a model states that one chunk supports or contradicts another."""

AGAINST_LINK_TYPES = [kind.name for kind in LINK_TYPES if kind.stance == "against"]
"""Types whose source is evidence against their target."""


@dataclass(frozen=True)
class ChunkTypeSpec:
    """A custom chunk type; its fields live in ``metadata.extra``."""

    name: str
    description: str = ""
    required_fields: tuple[str, ...] = ()
    optional_fields: tuple[str, ...] = ()


class TypeRegistry:
    """The chunk and link types that one store accepts on writing: the built-in ones and registered ones."""

    def __init__(
        self,
        chunk_types: Mapping[str, Mapping[str, Any]] | None = None,
        link_types: Mapping[str, str] | None = None,
    ) -> None:
        self.chunk_types: dict[str, ChunkTypeSpec] = {name: ChunkTypeSpec(name) for name in CHUNK_TYPES}
        self.link_types: dict[str, str] = dict.fromkeys(ALL_LINK_TYPES, "")
        for name, spec in (chunk_types or {}).items():
            self.register_chunk_type(name, **spec)
        for name, description in (link_types or {}).items():
            self.register_link_type(name, description)

    def register_chunk_type(
        self,
        name: str,
        description: str = "",
        required_fields: Sequence[str] | str = (),
        optional_fields: Sequence[str] | str = (),
    ) -> None:
        """Accept chunks of a new type; ``required_fields`` must then be present in their metadata."""
        check_type_name(name)
        self.chunk_types[name] = ChunkTypeSpec(
            name, description, tuple(as_list(required_fields)), tuple(as_list(optional_fields))
        )

    def register_link_type(self, name: str, description: str = "") -> None:
        """Accept links of a new type."""
        check_type_name(name)
        self.link_types[name] = description

    def check_chunk(self, chunk_type: str, extra: Mapping[str, Any]) -> str:
        """Return ``chunk_type`` if it may be written with these extra fields; raises InvalidChunk."""
        spec = self.chunk_types.get(chunk_type) if isinstance(chunk_type, str) else None
        if spec is None:
            known = ", ".join(self.chunk_types)
            raise InvalidChunk(
                f"unknown chunk type {shown(chunk_type)}: use one of {known}",
                hint="register custom types with store.types.register_chunk_type or in config.toml",
            )
        if not spec.required_fields:
            return chunk_type
        missing = [name for name in spec.required_fields if extra.get(name) in (None, "")]
        if missing:
            raise InvalidChunk(f"a chunk of type {chunk_type} needs the metadata fields {', '.join(missing)}")
        return chunk_type

    def check_link(self, link_type: str) -> str:
        """Return ``link_type`` if it may be written; raises InvalidLink."""
        if not isinstance(link_type, str) or link_type not in self.link_types:
            known = ", ".join(self.link_types)
            raise InvalidLink(
                f"unknown link type {shown(link_type)}: use one of {known}",
                hint="register custom types with store.types.register_link_type or in config.toml",
            )
        return link_type

"""Records are structs that work wherever a data class does."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass, replace
from importlib import import_module
from typing import Any

import pytest

from rlm_mem import Chunk, ChunkLinks, Config, Filters, Hit
from rlm_mem.cli.ask import RecallCall
from rlm_mem.models import Completion, Usage
from rlm_mem.models.apis import Api
from rlm_mem.record import FrozenRecord, MutableRecord
from tests.house.sources import MODULES, SOURCE


def test_what_dataclasses_offers_works_on_a_record() -> None:
    config = Config()
    assert is_dataclass(Config) and is_dataclass(config)
    assert [field.name for field in fields(Filters)] == list(asdict(Filters()))
    narrower = replace(config, search=replace(config.search, candidates=7))
    assert asdict(narrower)["search"] == {"language": "english", "candidates": 7}
    assert config.search.candidates == 100
    assert replace(config) == config


def test_a_record_is_frozen_hashed_copied_and_pickled_as_a_value() -> None:
    filters = Filters(tags_any=("a",))
    assert {filters: 1}[Filters(tags_any=("a",))] == 1
    assert pickle.loads(pickle.dumps(filters)) == copy.deepcopy(filters) == filters
    assert repr(Filters(end="2026")).startswith("Filters(tags_all=(), ")
    with pytest.raises(AttributeError):
        filters.end = "2026"  # type: ignore[misc]


def test_a_record_that_is_not_frozen_is_changed_compared_and_copied_by_its_fields() -> None:
    chunk = Chunk("chunk-a", "Dana moved.", 3, links=[ChunkLinks("chunk-b", "related_to")])
    other = copy.deepcopy(chunk)
    assert pickle.loads(pickle.dumps(chunk)) == other == chunk
    other.links[0].strength = 0.9
    other.metadata = replace(other.metadata, confidence=0.1)
    assert chunk != other and chunk.links[0].strength == 0.5 and chunk.metadata.confidence == 0.7
    assert is_dataclass(chunk) and asdict(chunk)["links"] == [asdict(chunk.links[0])]
    with pytest.raises(TypeError, match="unhashable"):
        hash(chunk)


def test_every_record_has_the_fields_of_a_data_class_whatever_its_types_name() -> None:
    for path in MODULES:
        if re.search(r"^class .*Record[,)]", path.read_text(encoding="utf-8"), re.MULTILINE):
            parts = path.relative_to(SOURCE).with_suffix("").parts
            import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    records = [*below(FrozenRecord), *below(MutableRecord)]
    assert {Hit, Chunk, Api, RecallCall} <= set(records)
    for record in records:
        assert [field.name for field in fields(record)] == list(record.__struct_fields__)
    usage = {field.name: field for field in fields(Completion)}["usage"]
    assert usage.type == "Usage" and usage.default_factory is Usage


def below(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        yield one
        yield from below(one)

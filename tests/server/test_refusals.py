"""What a caller is told of arguments that do not fit: the argument, and types by the words of JSON."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from rlm_mem.operations.decoding import from_agent, from_json
from rlm_mem.operations.problems import Refused
from rlm_mem.operations.types import Request


class Asked(Request):
    text: Annotated[str, msgspec.Meta(min_length=1)]
    limit: Annotated[int, msgspec.Meta(ge=1)] = 1
    tags: list[str] = msgspec.field(default_factory=list)
    order: Literal["newest", "oldest"] = "newest"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "text: missing"),
        ({"text": 5}, "text: expected text, got a whole number"),
        ({"text": "x", "limit": "many"}, "limit: expected a whole number, got text"),
        ({"text": "x", "limit": 0}, "limit: expected a whole number >= 1"),
        ({"text": "x", "tags": [1]}, "tags.0: expected text, got a whole number"),
        ({"text": "x", "tags": 7}, "tags: expected a list, got a whole number"),
    ],
)
def test_a_refusal_names_the_argument_and_what_is_wrong(given: dict[str, Any], told: str) -> None:
    for refuse in (lambda: from_agent(Asked, given), lambda: from_json(Asked, msgspec.json.encode(given))):
        with pytest.raises(Refused) as refused:
            refuse()
        assert str(refused.value) == told
        (field,) = refused.value.problem.errors
        assert field.pointer == "/" + told.partition(":")[0].replace(".", "/")


@pytest.mark.parametrize(
    "given", [{"text": "x", "order": "w" * 3_000_000}, {"text": "x", "n" * 3_000_000: 1}]
)
def test_a_refusal_quotes_little_of_what_was_given(given: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        from_json(Asked, msgspec.json.encode(given))
    assert len(msgspec.json.encode(refused.value.problem)) < 1_500

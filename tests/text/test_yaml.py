"""Front matter as other programs write it becomes plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rlm_mem.text.yaml import BadYaml, load, plain_fields, plain_reader, quick_fields, round_trip


@pytest.mark.parametrize("reader", [plain_reader, round_trip])
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T10:00:00+02:00", "2026-01-01T08:00:00.000000Z"),
        ("2026-01-01 10:00:00", "2026-01-01T10:00:00.000000Z"),
        ("!!set {x, z, u}", ["u", "x", "z"]),
        ("12:30:45", "12:30:45"),
        ("1_000", 1000),
        ("{1: [yes, null]}", {"1": ["yes", None]}),
    ],
)
def test_a_value_is_plain_data(reader: Callable[[], Any], written: str, value: Any) -> None:
    assert plain_fields(load(reader(), f"field: {written}"), 100) == {"field": value}


@pytest.mark.parametrize("reader", [plain_reader, round_trip])
@pytest.mark.parametrize(
    "text", [f"0x{'f' * 4_000}: 1", f"a: 0x{'f' * 4_000}", "a: 2026-02-30", "- a", "a: [1, 2, 3]"]
)
def test_what_is_no_bounded_table_is_refused(reader: Callable[[], Any], text: str) -> None:
    with pytest.raises(BadYaml):
        plain_fields(load(reader(), text), 3)


def test_a_number_that_json_does_not_have_is_left_to_the_yaml_reader() -> None:
    assert quick_fields("a: 1\nb: [x, z]") == {"a": 1, "b": ["x", "z"]}
    assert quick_fields('a: ["x", -Infinity]') is None


@pytest.mark.parametrize("reader", [plain_reader, round_trip])
@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-01", "2026-02-10T25:00:00Z"])
def test_a_day_that_there_is_not_is_named_with_its_field_and_the_form_expected(
    reader: Callable[[], Any], day: str
) -> None:
    with pytest.raises(BadYaml) as raised:
        load(reader(), f"tags: [a]\ncreated_at: {day}\n", 2)
    assert str(raised.value) == (
        f"has a wrong value (line 3): created_at: '{day}' is not a day or time such as 2026-02-10 or "
        "2026-02-10T21:37:00Z"
    )

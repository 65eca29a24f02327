"""The Python API: every name at the root, described in docs/python.md, and without untyped doors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import brain.scripts
import rlm_mem
from rlm_mem import errors

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def public_classes() -> set[type]:
    """What the root and the documented import path export, and what hangs on Memory."""
    found = [getattr(rlm_mem, name) for name in rlm_mem.__all__]
    found += [getattr(brain.scripts, name) for name in brain.scripts.__all__]
    return {one for one in found if inspect.isclass(one)}


def public_methods() -> Iterator[tuple[str, inspect.Signature]]:
    for cls in public_classes():
        for name, member in inspect.getmembers(cls):
            if name.startswith("_") or not callable(member) or inspect.isclass(member):
                continue
            if not getattr(member, "__module__", "").startswith("rlm_mem"):
                continue
            yield f"{cls.__name__}.{name}", inspect.signature(member)


def test_every_error_and_result_is_at_the_root_and_in_the_docs() -> None:
    missing = [name for name in errors.__all__ if getattr(rlm_mem, name, None) is not getattr(errors, name)]
    undocumented = [name for name in rlm_mem.__all__ if f"`{name}`" not in PAGE and name != "__version__"]
    assert (missing, undocumented) == ([], [])


def test_the_page_says_what_every_method_of_a_memory_is_for() -> None:
    section = PAGE.partition("\n## What a memory can do\n")[2].partition("\n## ")[0]
    table, _, rest = section.partition("`Filters`")
    named = set(re.findall(r"`(\w+)`", table)) - {"None"}
    methods = {name for name in dir(rlm_mem.Memory) if not name.startswith("_")} - {"open"}
    assert named == methods | {"store"}
    fields = {*inspect.signature(rlm_mem.Filters).parameters, *inspect.signature(rlm_mem.Limits).parameters}
    set_by_search = {"valid_at", "shown_at"}
    assert set(re.findall(r"`(\w+)`", rest.partition("```")[0])) == fields - set_by_search | {"Limits"}


def test_no_public_method_takes_any_keyword() -> None:
    loose = {
        name
        for name, signature in public_methods()
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD
        and parameter.annotation in ("Any", inspect.Parameter.empty)
    }
    assert loose == set()


def test_memory_returns_no_untyped_dictionary() -> None:
    loose = {
        name
        for name, member in inspect.getmembers(rlm_mem.Memory, inspect.isfunction)
        if not name.startswith("_") and "dict[str, Any]" in str(inspect.signature(member).return_annotation)
    }
    assert loose == set()


def test_figures_are_printed_with_their_nouns_in_number(tmp_path: Path) -> None:
    with rlm_mem.Memory.open(tmp_path / "brain") as memory:
        memory.remember("Ana drinks tea.", conversation_id="kitchen", occurred_at="2026-03-01")
        assert "1 chunk (" in str(memory.stats()) and "1 conversation, 0 links" in str(memory.stats())
        memory.remember("Ben drinks water.", conversation_id="garden", occurred_at="2026-03-02")
        assert "2 chunks (" in str(memory.stats()) and "2 conversations, " in str(memory.stats())

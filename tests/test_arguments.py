"""A wrong argument of the Python API is an error of the project's own tree, and changes nothing."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from traceback import format_exception_only
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from rlm_mem import (
    AsyncMemory,
    Config,
    Filters,
    InputError,
    InvalidChunk,
    InvalidConfig,
    InvalidQuery,
    Limits,
    Memory,
    REPLSession,
    RlmMemError,
    StoreClosed,
)
from rlm_mem.interchange.export import export_store
from rlm_mem.interchange.importing import import_source

WRONG: dict[str, Any] = {
    "number": -1, "huge": 10**30, "fraction": 1.5, "nan": float("nan"), "yes": True, "empty": "", "words": "no such",
    "surrogate": "\ud800", "nul": "\0", "bytes": b"bytes", "list": [None], "tuple": (), "mapping": {"a": object()},
    "odd mapping": {1: 2}, "object": object(), "day": date(1, 1, 1), "time": datetime.max,
    "path": Path("/nonexistent/\0"), "iterator": iter([1]), "array": np.array(["a", "b"]), "no array": np.array([]),
    "array of one": np.array("a"), "nested": [[[]]],
}  # fmt: skip
"""Values that are wrong for most arguments. None is callable: what a caller's own function raises is the caller's."""

REQUIRED = {
    "question": "Where does Ann live?",
    "query": "tea",
    "link_type": "related_to",
    "path": ".",
    "code": "1",
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory.open(tmp_path_factory.mktemp("arguments") / "brain") as memory:
        memory.remember("Ann lives in Oslo.", conversation_id="c")
        memory.recall("Where does Ann live?")
        yield memory


def called(method: Any, arguments: dict[str, Any]) -> None:
    """Call, and read what the result reads only when it is asked for."""
    found = method(**arguments)
    if inspect.isgenerator(found) or hasattr(found, "__next__"):
        list(found)
    close = getattr(found, "close", None)
    if callable(close):
        close()


def odd_errors(owner: Any, name: str) -> list[str]:
    """What a method raises that is not of the project's tree, for each wrong value of each argument."""
    method = getattr(owner, name)
    chosen = {
        parameter.name: parameter
        for parameter in inspect.signature(method).parameters.values()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    right = {
        one: REQUIRED.get(one, "chunk-none")
        for one, parameter in chosen.items()
        if parameter.default is parameter.empty
    }
    odd = []
    for argument in chosen:
        for what, value in WRONG.items():
            try:
                called(method, {**right, argument: value})
            except RlmMemError as error:
                assert str(error)
            except Exception as error:  # noqa: BLE001 - the point of the test
                odd.append(f"{name}({argument}={what}): {type(error).__name__}: {error}")
    return odd


METHODS = [
    name
    for name, _ in inspect.getmembers(Memory, inspect.isfunction)
    if not name.startswith("_") and name not in ("close", "batch", "limits")
]


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_argument_of_memory_is_an_error_of_the_tree(
    memory: Memory, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a path such as "." is a folder to read
    assert odd_errors(memory, name) == []


TIERED = {
    "continuum": ["consolidate", "prune", "hints", "undo", "undo_change", "repairs"],
    "continuum.queries": ["query"],
    "continuum.review": ["approve", "reject", "defer", "case"],
    "continuum.traces": ["record", "use", "read", "find"],
    "continuum.workspace": ["start", "put", "after_tool_call", "text"],
}


@pytest.mark.parametrize("place", TIERED)
def test_a_wrong_argument_of_the_continuum_is_an_error_of_the_tree(memory: Memory, place: str) -> None:
    owner = attrgetter(place)(memory)
    assert [odd for name in TIERED[place] for odd in odd_errors(owner, name)] == []


def test_a_memory_that_was_not_opened_says_how(tmp_path: Path) -> None:
    with pytest.raises(InputError) as made:
        Memory(str(tmp_path))  # type: ignore[arg-type]
    assert "Memory.open" in str(made.value.hint)
    opening = AsyncMemory.open(tmp_path / "brain")
    with pytest.raises(AttributeError, match="await"):
        opening.remember("Ann lives in Oslo.")
    opening.close()


def test_a_traceback_shows_the_remedy_below_the_message(memory: Memory) -> None:
    remembered = memory.remember("Ann lives in Oslo.")
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: Memory("brain"), "Memory.open"),  # type: ignore[arg-type]
        (lambda: memory.remember("Ann lives in Rome.", replaces=remembered), "chunk_ids"),  # type: ignore[arg-type]
        (lambda: memory.recall("Where is Ann?", limits={"iterations": 3}), "Limits(iterations"),  # type: ignore[arg-type]
    ]
    for call, remedy in calls:
        with pytest.raises(InputError) as caught:
            call()
        *_, shown = format_exception_only(caught.value)
        assert shown.startswith("hint: ") and remedy in shown
    error = pickle.loads(pickle.dumps(caught.value))
    error.hint = "another"
    assert error.__notes__ == ["hint: another"]
    error.hint = None
    assert format_exception_only(error)[1:] == []


def test_text_of_a_subclass_is_stored_as_text(tmp_path: Path) -> None:
    """Columns of a table give np.str_, and enumerations their members: their text is kept, and can be read again."""
    conversation = StrEnum("Conversation", {"TRIP": "trip"}).TRIP
    with Memory.open(tmp_path / "brain") as memory:
        for conversation_id in (np.str_("trip"), conversation):
            text = np.str_(f"Ann took the train, says {type(conversation_id).__name__}.")
            [one] = memory.remember(text, conversation_id=conversation_id, tags=np.array(["rail"])).chunk_ids
            memory.update(one, content=np.str_(f"{text} And back."))
            found = memory.get(one)
            assert found is not None
            assert (found.content, found.metadata.conversation_id) == (f"{text} And back.", "trip")
            assert found.tags == ["rail"]
        [one] = memory.remember_many([np.str_("Ben took the bus.")])
        nested = MappingProxyType({"car": 4})
        for metadata in ({"seat": np.str_("4A")}, {"price": [np.float64(4.5)]}, {"place": nested}):
            with pytest.raises(InvalidChunk, match="which JSON cannot represent"):
                memory.remember("Cleo walked.", metadata=metadata)
        [one] = memory.remember("Cleo ran.", provenance=nested).chunk_ids
        found = memory.get(one)
        assert found is not None and found.metadata.provenance["car"] == 4


def test_a_wrong_setting_of_a_memory_is_an_error_of_the_tree(tmp_path: Path) -> None:
    for argument in ("namespace", "config", "clock", "read_only", "actor", "confined"):
        for value in (5, -1.5, "\ud800", b"x", [1], object(), np.array(["a", "b"])):
            with pytest.raises(RlmMemError):
                Memory.open(tmp_path / "brain", **{argument: value})
    for place in (5, b"brain", "\ud800", "\0", ["brain"], np.array(["a", "b"])):
        with pytest.raises(RlmMemError):
            Memory.open(place)  # type: ignore[arg-type]


def test_a_wrong_argument_of_a_session_or_a_class_is_an_error_of_the_tree(memory: Memory) -> None:
    for wrong in (
        {"max_depth": "x"},
        {"functions": 5},
        {"functions": {1: print}},
        {"budget": 3},
        {"depth": None},
    ):
        with pytest.raises(RlmMemError):
            REPLSession(memory.store, **wrong)
    with memory.recall_session("Where?") as session, pytest.raises(InputError, match="code must be text"):
        session.execute(5)  # type: ignore[arg-type]
    for owner in (Filters, Limits):
        assert odd_errors(type("Owner", (), {"make": staticmethod(owner)}), "make") == []


def test_texts_that_cannot_be_sent_or_asked_for_are_errors_of_the_tree(memory: Memory) -> None:
    within_itself: dict[str, Any] = {}
    within_itself["itself"] = within_itself
    with REPLSession(memory.store, lambda _prompt, **_options: "yes") as session:
        for context in ({(1, 2): "x"}, within_itself):
            with pytest.raises(InputError, match="not plain data"):
                session.llm_query("Is it so?", context)
    with pytest.raises(InvalidQuery, match="surrogate"):
        memory.search("tea", filters=Filters(chunk_type="\ud800"))


def test_the_hud_of_anything_but_a_persona_says_what_is_needed(memory: Memory) -> None:
    for wrong in ("text", "", 0, [], {}):
        with pytest.raises(InputError, match=r"persona must be Persona, not"):
            memory.hud(wrong)  # type: ignore[arg-type]


def test_only_true_deletes_for_good(memory: Memory) -> None:
    made = memory.remember("A note that stays.").chunk_ids[0]
    for given in ("no", 0, None, "False"):
        with pytest.raises(InputError, match="permanent must be True or False"):
            memory.delete(made, given)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="dry_run must be True or False"):
            memory.erase(person="Ann", dry_run=given)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="dry_run must be True or False"):
            memory.repair(dry_run=given)  # type: ignore[arg-type]
    assert memory.get(made) is not None
    assert memory.search("note that stays")


FLAGS = {
    **dict.fromkeys(METHODS, ""),
    **{name: place for place, names in TIERED.items() for name in names if not hasattr(Memory, name)},
    **dict.fromkeys(("skills", "repairs"), "continuum"),
    **dict.fromkeys(("get_chunk", "get_many"), "store"),
}
"""Methods with the object that has them, below a memory."""


def flags_of(method: Any) -> list[str]:
    """The arguments of a method that are True or False."""
    given = inspect.signature(method).parameters.values()
    return [one.name for one in given if one.annotation in ("bool", "bool | None")]


def refused_flags(method: Any, **right: Any) -> list[str]:
    """The flags of a method, each of which it must refuse as a text and as a number."""
    flags = flags_of(method)
    for flag in flags:
        for given in ("yes", "", 0, 1):
            with pytest.raises(InputError, match=f"^{flag} must be True or False, not"):
                called(method, {**right, flag: given})
    return flags


def test_a_flag_is_true_or_false_and_nothing_that_counts_as_one(memory: Memory, tmp_path: Path) -> None:
    right: dict[str, Any] = {
        **REQUIRED, "text": "Ann has a kettle.", "chunk_id": "chunk-none", "chunk_ids": ["chunk-none"],
        "goal": "g", "file": memory.continuum.traces.record("g").file, "success": True, "name": "n", "body": "b",
    }  # fmt: skip
    found = set()
    for name, place in FLAGS.items():
        owner = attrgetter(place)(memory) if place else memory
        method = getattr(owner, name)
        needed = inspect.signature(method).parameters.values()
        given = {
            one.name: right.get(one.name, "x")
            for one in needed
            if one.default is one.empty and one.kind is not one.VAR_KEYWORD
        }
        given |= {"person": "Ann"} if name == "erase" else {}
        found.update(f"{name} {flag}" for flag in refused_flags(method, **given))
    assert {
        "remember again",
        "search explain",
        "persona keep",
        "sync full",
        "get_many track",
        "archive dry_run",
    } <= found
    assert not memory.search("kettle")
    assert refused_flags(import_source, store=memory.store, path=tmp_path)
    assert refused_flags(export_store, store=memory.store, target=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="again must be True or False"):
        memory.remember_many([{"text": "Ann has a kettle.", "again": "yes"}])


def test_a_time_is_compared_as_the_moment_that_it_names(memory: Memory) -> None:
    at = memory.trajectories()[0].started_at
    assert memory.trajectories(since=at[:10], until=at[:10])
    assert memory.trajectories(since=at[:7])
    there = datetime.fromisoformat(at).astimezone(timezone(timedelta(hours=14))).isoformat()
    assert there[:13] > at[:13]  # as text it is later
    assert memory.trajectories(since=there, until=there)
    with pytest.raises(InvalidQuery, match="since must be a date or time, not 'yesterday'"):
        memory.events(since="yesterday")


def test_settings_and_limits_are_taken_as_they_are_given(memory: Memory) -> None:
    for given in ("", 0, [], {}):
        with pytest.raises(InputError, match="limits must be Limits"):
            memory.recall("Where does Ann live?", limits=given)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="config must be Config"):
            memory.recall_session("Where?", config=given)  # type: ignore[arg-type]
    with memory.recall_session("Where?", config=Config()) as session:
        assert session.execute("print(1)").output


def test_a_name_that_is_not_known_is_refused_before_anything_is_done(memory: Memory, tmp_path: Path) -> None:
    """A mistyped ``dry_run`` that is passed over would store a folder, and archive what it lacks."""
    (tmp_path / "note.md").write_text("The kettle is blue.")
    with pytest.raises(InputError, match="does not take 'dryrun'") as raised:
        memory.sync_folder(tmp_path, dryrun=True)  # type: ignore[call-arg]
    assert "dry_run" in str(raised.value.hint)
    assert not memory.search("kettle")
    with pytest.raises(InputError, match="patterns must be a list"):
        memory.sync_folder(tmp_path, patterns=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidConfig, match="there is no budget 'secs': use one of iterations"):
        memory.limits(secs=3)


def test_a_question_that_is_no_text_is_not_called_empty(memory: Memory) -> None:
    for given in (5, None, ["Where?"]):
        with pytest.raises(InvalidQuery, match="the question must be text, not"):
            memory.recall(given)  # type: ignore[arg-type]
    with pytest.raises(InvalidQuery, match="the question is empty"):
        memory.recall(" ")


def test_a_memory_wraps_a_store_or_opens_a_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="store must be ChunkStore, not"):
        Memory(str(tmp_path))  # type: ignore[arg-type]


def test_a_memory_cannot_be_pickled_or_copied(memory: Memory) -> None:
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InputError, match="an open Memory can be neither pickled nor copied"):
            attempt(memory)
        with pytest.raises(InputError, match="an open AsyncMemory can be neither"):
            attempt(AsyncMemory(memory))


def test_a_memory_is_shown_by_its_namespace_and_place(memory: Memory) -> None:
    assert repr(memory) == f"<Memory: namespace default of {memory.store.backend.location}>"


def test_nothing_reads_a_memory_that_was_closed(place: Path | str) -> None:
    with Memory.open(place) as memory:
        memory.remember("Ann lives in Oslo.")
        memory.recall("Where does Ann live?")
    for read in (
        memory.stats, memory.events, memory.trajectories, memory.costs, memory.recorded_changes, memory.tags,
        memory.export_trajectories, lambda: memory.persona(keep=True).mode, lambda: memory.search("Oslo"),
    ):  # fmt: skip
        with pytest.raises(StoreClosed, match="was closed"):
            list(read())


def test_the_settings_of_a_brain_may_begin_with_a_byte_order_mark_and_are_recognised(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbf[recall]\r\nmax_seconds = 5\r\n")
    with Memory.open(tmp_path) as memory:
        assert memory.config.recall.max_seconds == 5
    for data, said in (
        (b"[recall]\n\xff", "byte 9 is not UTF-8"),
        (
            b"[recall]\n<<<<<<< HEAD\n=======\n>>>>>>> b\n",
            "config.toml: has merge conflict markers: keep one",
        ),
        (b"[recall]\nmax_seconds = nan", "recall.max_seconds must be from 0.01 to 86400, not nan"),
    ):
        file.write_bytes(data)
        with pytest.raises(InvalidConfig, match=said):
            Memory.open(tmp_path)


@pytest.mark.parametrize("setting", ["sandbox.memory_mb", "sandbox.timeout_seconds", "recall.max_depth"])
def test_the_file_of_a_brain_raises_limits_to_a_bound_and_environment_and_caller_beyond(
    tmp_path: Path, setting: str
) -> None:
    section, _, name = setting.partition(".")
    most = {"memory_mb": 128, "timeout_seconds": 300.0, "max_depth": 10}[name]
    (tmp_path / "config.toml").write_text(f"[{section}]\n{name} = {most}\n")
    assert getattr(getattr(Config.load(tmp_path), section), name) == most
    (tmp_path / "config.toml").write_text(f"[{section}]\n{name} = {most + 1}\n")
    with pytest.raises(
        InvalidConfig, match=rf"more than the file .* may set \(at most {most:g}\)"
    ) as refused:
        Config.load(tmp_path)
    variable, _, value = (refused.value.hint or "").removeprefix("set ").partition(" ")[0].partition("=")
    for config in (
        Config.load(None, environ={variable: value}),
        Config.load(None, **{section: {name: most + 1}}),
    ):
        assert getattr(getattr(config, section), name) == most + 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (b"a note", "data.decode('utf-8')"),
        (["a note"], "remember_many"),
        ([{"role": "user"}], "remember_many"),
    ],
)
def test_a_text_of_a_wrong_type_is_refused_with_what_takes_it(
    tmp_path: Path, text: object, hint: str
) -> None:
    with Memory.open(tmp_path) as memory, pytest.raises(InvalidChunk) as refused:
        memory.remember(text)  # type: ignore[arg-type]
    assert hint in (refused.value.hint or "")

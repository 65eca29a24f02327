"""A session: chat commands, modes and sliders, and the state that is kept between runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.errors import InvalidConfig, NotFoundError, StoreReadOnly
from rlm_mem.persona import Command, Library, Persona, load_personality, load_slider, parse_commands


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("Set humor to 20%", Command("set", "humor", 20)),
        ("set Humor to 20", Command("set", "humor", 20)),
        ("Please set the humor slider to 20 percent.", Command("set", "humor", 20)),
        ("humor 20%", Command("set", "humor", 20)),
        ("Max directness", Command("set", "directness", 100)),
        ("maximize directness!", Command("set", "directness", 100)),
        ("Min humor", Command("set", "humor", 0)),
        ("Set humor to max", Command("set", "humor", 100)),
        ("Raise creativity by 10", Command("change", "creativity", 10)),
        ("lower creativity by 10%", Command("change", "creativity", -10)),
        ("Reset sliders", Command("reset")),
        ("reset all sliders", Command("reset")),
        ("Reset humor", Command("reset", "humor")),
        ("Research mode", Command("mode", mode="RESEARCH_ANALYST")),
        ("switch to creative mode", Command("mode", mode="CREATIVE_DIRECTOR")),
        ("Technical mode, please", Command("mode", mode="TECHNICAL_COPILOT")),
        ("Concise mode", Command("mode", mode="CONCISE")),
        ("normal mode", Command("mode", mode="BASE")),
    ],
)
def test_a_chat_command_is_understood(text: str, done: Command) -> None:
    assert parse_commands(text, Library()) == [done]


def test_one_message_may_have_several_commands() -> None:
    assert parse_commands("Research mode, set humor to 5% and max directness", Library()) == [
        Command("mode", mode="RESEARCH_ANALYST"),
        Command("set", "humor", 5),
        Command("set", "directness", 100),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is humor?",
        "Set a timer to 20 minutes",
        "Set wit to 20%",
        "dark mode",
        "My humor is 20% better today",
        "user: 12",
        "Reset my password",
        "Set humor to 20% and tell me a joke",
        "I said: set humor to 20%",
        "x" * 100_000,
        "set " * 60,
    ],
)
def test_ordinary_text_is_not_a_command(text: str) -> None:
    assert parse_commands(text, Library()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Set humor to 120%", "Humor must be from 0 to 100, not 120"),
        ("Set humor to -5", "Humor must be from 0 to 100, not -5"),
        ("Set humor to 12.5%", "Humor must be a whole number"),
    ],
)
def test_a_command_out_of_range_is_refused_and_changes_nothing(text: str, said: str) -> None:
    persona = Persona()
    with pytest.raises(InvalidConfig, match=said):
        persona.say(f"Research mode and {text}")
    assert (persona.mode, persona.by_hand) == ("BASE", {})


def test_what_was_said_last_holds() -> None:
    persona = Persona()
    persona.say("Set humor to 77% and set verbosity to 5%")
    persona.say("Technical mode")
    assert persona.sliders["humor"] == 15, "the mode names it"
    assert persona.by_hand == {}, "it names verbosity, too"
    persona.set("User", 10)
    persona.use("concise")
    assert persona.by_hand == {"user": 10}, "the mode says nothing of it"
    persona.say("Max humor")
    assert persona.sliders["humor"] == 100
    persona.say("Reset sliders")
    assert (persona.mode, persona.sliders) == ("CONCISE", Library().values("CONCISE"))


def test_raising_ends_at_the_end_of_the_range() -> None:
    persona = Persona()
    persona.say("raise humor by 90")
    assert persona.sliders["humor"] == 100
    persona.say("lower humor by 30")
    assert persona.sliders["humor"] == 70


def test_reset_of_one_slider_leaves_the_others() -> None:
    persona = Persona()
    persona.say("max humor, max soul")
    persona.say("reset humor")
    assert persona.by_hand == {"soul": 100}


@pytest.mark.parametrize("value", [101, -1, 2.5, "20", True, None])
def test_a_slider_takes_whole_numbers_of_its_range_only(value: object) -> None:
    persona = Persona()
    with pytest.raises(InvalidConfig):
        persona.set("humor", value)  # type: ignore[arg-type]
    assert persona.by_hand == {}


def test_sessions_keep_their_own_state_between_runs(tmp_path: Path) -> None:
    Persona(tmp_path, "alice", keep=True).say("Research mode and max humor")
    Persona(tmp_path, "bob", keep=True).set("soul", 3)
    alice, bob = Persona(tmp_path, "alice", keep=True), Persona(tmp_path, "bob", keep=True)
    assert (alice.mode, alice.by_hand) == ("RESEARCH_ANALYST", {"humor": 100})
    assert (bob.mode, bob.by_hand) == ("BASE", {"soul": 3})
    assert Persona(tmp_path, "alice").mode == "BASE", "only where it is wanted"


def test_nothing_is_written_where_nothing_is_kept(tmp_path: Path) -> None:
    Persona(tmp_path).say("Research mode")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("session", ["../x", "a/b", "", ".hidden", "a" * 80, "x\n", "."])
def test_a_session_name_that_is_a_path_is_refused(tmp_path: Path, session: str) -> None:
    with pytest.raises(InvalidConfig, match="is not a valid name of a session"):
        Persona(tmp_path, session, keep=True)


@pytest.mark.parametrize(
    "state",
    ["", "[]", "{", '{"mode": 3, "sliders": {}}', '{"mode": "BASE", "sliders": {"humor": 400}}', "\udcff"],
)
def test_a_damaged_state_is_named_and_left_alone(tmp_path: Path, state: str) -> None:
    Persona(tmp_path, keep=True).set("humor", 1)
    path = tmp_path / "persona" / "default.json"
    path.write_bytes(state.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidConfig, match=r"default\.json"):
        Persona(tmp_path, keep=True)
    assert path.read_bytes() == state.encode("utf-8", "surrogateescape")


def test_a_mode_that_is_gone_is_not_found(tmp_path: Path) -> None:
    folder = tmp_path / "personalities"
    folder.mkdir()
    (folder / "MINE.md").write_text("# MINE Mode\n", encoding="utf-8")
    Persona(tmp_path, keep=True).use("mine")
    (folder / "MINE.md").unlink()
    with pytest.raises(NotFoundError, match="there is no mode 'MINE'"):
        Persona(tmp_path, keep=True)


def test_a_memory_has_a_persona(place: Path | str) -> None:
    with Memory.open(place) as memory:
        memory.persona("chat", keep=True).say("Concise mode")
        assert memory.persona("chat", keep=True).mode == "CONCISE"
        assert memory.persona(mode="research").mode == "RESEARCH_ANALYST"


def test_files_of_ones_own_and_kept_sessions_need_no_folder(place: Path | str) -> None:
    with Memory.open(place) as memory:
        files = memory.store.backend.files("default")
        files.write("personalities/MINE.md", b"# MINE Mode\n\n## Configuration\n- Wit: 5\n")
        files.write("sliders/WIT.md", b"# Wit Slider\n\n## Range\n0-10\n")
        kept = memory.persona("chat", keep=True)
        before = kept.signature()
        kept.say("Mine mode")
        assert kept.signature() != before
        assert memory.persona("chat", keep=True).sliders["wit"] == 5
        assert load_personality("MINE", place)["sliders"]["wit"] == 5
        assert load_slider("wit", place)["range"] == [0, 10]
        assert len(memory.persona().library.copy_defaults()) > 10
        files.write("persona/chat.json", b"{")
        with pytest.raises(InvalidConfig, match=r"chat\.json"):
            memory.persona("chat", keep=True)


def test_what_is_read_only_keeps_no_session(place: Path | str) -> None:
    Memory.open(place).close()
    with Memory.open(place, read_only=True) as memory, pytest.raises(StoreReadOnly):
        memory.persona(keep=True).set("humor", 5)


def test_on_a_database_each_namespace_has_its_own_persona(dsn: str) -> None:
    with Memory.open(dsn, namespace="team/ana") as ana, Memory.open(dsn, namespace="team/ben") as ben:
        ana.persona(keep=True).say("Research mode")
        assert ben.persona(keep=True).mode == "BASE"


def test_a_message_of_several_commands_is_carried_out_whole_or_not_at_all(tmp_path: Path) -> None:
    brain = tmp_path / "brain"
    (brain / "personalities").mkdir(parents=True)
    (brain / "personalities/MINE.md").write_text("# MINE Mode\n\n## Configuration\n- Humor: much\n")
    persona = Persona(brain, keep=True)
    persona.set("soul", 10)
    with pytest.raises(InvalidConfig, match=r"MINE\.md"):
        persona.say("Set humor to 20 and mine mode")
    assert persona.by_hand == Persona(brain, keep=True).by_hand == {"soul": 10}


def test_what_a_person_wrote_into_a_session_is_checked(tmp_path: Path) -> None:
    Persona(tmp_path, keep=True).set("humor", 20)
    (session,) = (tmp_path / "persona").iterdir()
    session.write_text(session.read_text().replace("20", '"20"'))
    with pytest.raises(InvalidConfig, match="humor must be a whole number, not '20'"):
        Persona(tmp_path, keep=True)

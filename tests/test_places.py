"""What names a brain: a folder or the DSN of a database; the address of anything else never becomes a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.cli import main
from rlm_mem.config import Config, locate
from rlm_mem.dsn import checked_place, shown_dsn
from rlm_mem.errors import InputError, InvalidConfig
from rlm_mem.interchange import export_store
from rlm_mem.persona.library import Library, load_personality
from rlm_mem.store.core.chunk_store import ChunkStore

MISTAKEN = [
    "mysql://root@db/brain", "postgress://ada:secret@db/brain", "postgresql:/db/brain", "postgresql:brain", "sqlite://",
    "sqlite:///brain.db", "http://127.0.0.1:7412", "https://example.org/brain", "file:///tmp/brain", "s3://bucket/brain",
    "postgresql+psycopg://db/brain", "POSTGRESS://db", "postgres//db/brain", "://brain", "x://y", "redis:6379",
    "host=db dbname=brain", " mysql://db ", "", "  ", "a\0b",
]  # fmt: skip


@pytest.mark.parametrize("named", MISTAKEN)
def test_the_address_of_something_else_is_refused_wherever_a_place_is_named_and_no_folder_is_made(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (
        Memory.open,
        ChunkStore,
        Config.load,
        locate,
        Library,
        lambda one: load_personality("BASE", one),
    ):
        with pytest.raises(InvalidConfig) as refused:
            use(named)
        assert "postgresql://" in str(refused.value.hint)
        assert "secret" not in str(refused.value)
    if named.strip() and "\0" not in named:
        for command in (
            ("--brain", named, "list"),
            ("init", named),
            ("remember", "x", "--brain", named),
            ("install", "--client", "cursor", "--print", "--brain", named),
            ("doctor", "--brain", named),
        ):
            assert main(command) == 2, command
            assert named.strip().split(":")[0] in capsys.readouterr().err
        monkeypatch.setenv("RLM_MEM_BRAIN", named)
        assert main(("list",)) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("named", ["mysql://db/brain", "postgresql://db/brain", "postgress:/db"])
def test_files_are_not_written_to_an_address(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(tmp_path / "brain" / "memory") as store:
        store.create_chunk("kept")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match="not a file or folder"):
            export_store(store, named)
    assert main(("--brain", str(tmp_path / "brain"), "backup", named)) == 2
    assert main(("--brain", str(tmp_path / "brain"), "copy", "mysql://db/brain")) == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "brain"]


@pytest.mark.parametrize(
    "named", ["brain", "/tmp/brain", "C:\\brain", "C:/brain", "notes:2026", "a b", "brain//memory", "~/b", "post"]
)  # fmt: skip
def test_folders_of_every_usual_name_are_folders(named: str) -> None:
    assert checked_place(named) == Path(named)


@pytest.mark.parametrize("folder", ["personalities", "sliders", "gauges", "memory"])
def test_the_nearest_brain_is_found_by_any_folder_of_a_brain(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "project" / "deep" / "below"
    work.mkdir(parents=True)
    (tmp_path / "project" / "brain" / folder).mkdir(parents=True)
    (tmp_path / "project" / "deep" / "brain").mkdir()  # a folder that only bears the name
    monkeypatch.chdir(work)
    assert locate() == tmp_path / "project" / "brain"
    if folder == "personalities":
        (tmp_path / "project" / "brain" / folder / "PIRATE.md").write_text(
            "# Pirate Mode\n\nSpeaks like one.\n"
        )
        assert load_personality("PIRATE")["mode"] == "PIRATE"


def test_a_folder_that_was_made_a_brain_is_used_in_it_and_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    notes = tmp_path / "notes"
    notes.mkdir()
    monkeypatch.chdir(notes)
    assert main(("store", "init", ".")) == 0
    assert main(("remember", "The gate is green.")) == 0
    assert locate() == notes and not (tmp_path / "home").exists()
    (notes / "deep" / "brain" / "memory").mkdir(parents=True)
    monkeypatch.chdir(notes / "deep")
    assert locate() == notes / "deep" / "brain", "the nearest one"
    monkeypatch.chdir(notes / "memory" / "chunks")
    assert locate() == notes
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory").mkdir()  # of some other program
    assert locate() == tmp_path / "home" / ".local" / "share" / "rlm-mem" / "brain"


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://ada:se:cret@db:5432/brain", "postgresql://ada@db:5432/brain"),
        ("postgresql://ada:se@cret@db/brain", "postgresql://ada@db/brain"),
        ("postgresql://ada:se/cret@db/brain", "postgresql://ada@db/brain"),
        ("postgresql://db/brain?user=ada&password=secret&sslmode=require",
         "postgresql://db/brain?user=ada&password=***&sslmode=require"),
        ("host=db password=secret dbname=brain", "host=db password=*** dbname=brain"),
        ("host=db password = 'se cr\\'et' dbname=brain", "host=db password=*** dbname=brain"),
        ("ada:secret@db/brain", "ada:***@db/brain"),
    ],
)  # fmt: skip
def test_a_password_is_not_shown(dsn: str, shown: str) -> None:
    assert shown_dsn(dsn) == shown

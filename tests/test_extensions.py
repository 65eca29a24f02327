"""Packages that extend this one: found by entry point, refused in a sentence that names them, never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.cli import main
from rlm_mem.errors import InputError, InvalidConfig, ModelUnavailable, StorageError
from rlm_mem.interchange import import_source
from rlm_mem.models import get_llm
from rlm_mem.persona.library import Library
from rlm_mem.store.core.chunk_store import ChunkStore

SAMPLE = Path(__file__).parents[1] / "examples" / "plugin"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package of one module, as pip leaves it: the module, and the metadata with its entry points."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def installed(package: str, code: str, **entries: str) -> None:
        """``entries``: the group without ``rlm_mem.``, and ``NAME = OBJECT`` of the package's module."""
        module = package.replace("-", "_")
        monkeypatch.delitem(sys.modules, module, raising=False)
        (site / f"{module}.py").write_text(textwrap.dedent(code), encoding="utf-8")
        about = site / f"{module}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = []
        for group, entry in entries.items():
            name, _, target = entry.partition("=")
            lines.append(f"[rlm_mem.{group}]\n{name.strip()} = {module}:{target.strip()}\n")
        (about / "entry_points.txt").write_text("".join(lines))

    return installed


def sentence(caught: pytest.ExceptionInfo[Any]) -> str:
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- backends ----------------------------------------------------------------------------------------


BACKEND = """
    from pathlib import Path
    from rlm_mem.store.local.local_backend import LocalBackend

    class Drawer(LocalBackend):
        def __init__(self, place, config, read_only=False):
            super().__init__(Path(place.partition("://")[2]), config, read_only=read_only)
"""


def test_the_scheme_of_an_installed_backend_is_a_place_wherever_one_is_named(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install("some-drawer", BACKEND, backends="drawer = Drawer")
    place = f"drawer://{tmp_path}/kept"
    with Memory.open(place) as memory:
        memory.remember("The walnut key hangs in the shed.")
        assert len(memory.search("walnut")) == 1
    with ChunkStore(place, read_only=True) as store:
        assert len(store.list_chunks()) == 1
    assert main(["--brain", place, "search", "walnut"]) == 0
    monkeypatch.setenv("RLM_MEM_BRAIN", place)
    assert main(["list"]) == 0
    assert main(["copy", str(tmp_path / "copy")]) == 0
    assert main(["check"]) == 0
    assert "walnut" in capsys.readouterr().out
    assert not (Path.cwd() / "drawer:").exists()


@pytest.mark.parametrize("scheme", ["nosuch", "shelf"])
def test_the_scheme_of_no_backend_is_refused_and_makes_no_folder(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (lambda: Memory.open(f"{scheme}://host/x"), lambda: ChunkStore(f"{scheme}://host/x")):
        with pytest.raises(InvalidConfig) as caught:
            name()
        assert f"{scheme}://host/x" in sentence(caught)
        assert f"{scheme}://" in str(caught.value.hint)
    assert main(["--brain", f"{scheme}://host/x", "init"]) != 0
    assert list(tmp_path.iterdir()) == []


def test_a_backend_that_cannot_be_loaded_or_opened_is_named(install: Install, tmp_path: Path) -> None:
    install("torn", "import nothing_of_this_name", backends="torn = Backend")
    install("moody", "def Backend(place, config, read_only):\n    return 1 / 0\n", backends="moody = Backend")
    with pytest.raises(StorageError) as caught:
        ChunkStore("torn://x")
    assert "rlm_mem.backends: torn = torn:Backend (package torn)" in sentence(caught)
    assert "nothing_of_this_name" in str(caught.value)
    with pytest.raises(StorageError) as caught:
        ChunkStore("moody://user:secret@host/x")
    assert "package moody: ZeroDivisionError" in sentence(caught)
    assert "secret" not in str(caught.value)
    ChunkStore(tmp_path / "memory").close()


# --- models ------------------------------------------------------------------------------------------


def test_a_broken_provider_is_named_and_the_others_go_on(install: Install) -> None:
    install("torn", "raise SystemExit('not today')", providers="torn = open_model")
    install("thing", "NOT_A_PROVIDER = 7", providers="thing = NOT_A_PROVIDER")
    install(
        "moody",
        "def open_model(model, settings):\n    raise KeyError(model)\n",
        providers="moody = open_model",
    )
    install(
        "fine",
        "def open_model(model, settings):\n    return lambda prompt: model * 2\n",
        providers="fine = open_model",
    )
    for name, wanted in {
        "torn:x": "rlm_mem.providers: torn = torn:open_model (package torn) cannot be loaded: SystemExit: not today",
        "thing:x": "thing = thing:NOT_A_PROVIDER (package thing) is not a provider: int cannot be called",
        "moody:x": "moody:x cannot be opened by the package moody: KeyError",
    }.items():
        with pytest.raises(ModelUnavailable) as caught:
            get_llm(name)
        assert wanted in sentence(caught)
    assert get_llm("fine:ab").complete("x").text == "abab"
    assert get_llm("offline").name == "offline"
    with pytest.raises(InvalidConfig, match="does not name a model"):
        get_llm("absent:x")


def test_a_name_that_two_packages_provide_is_refused(install: Install) -> None:
    code = "def open_model(model, settings):\n    return lambda prompt: prompt\n"
    install("one", code, providers="same = open_model")
    install("two", code, providers="same = open_model")
    with pytest.raises(ModelUnavailable) as caught:
        get_llm("same:x")
    assert "2 packages provide 'same' for rlm_mem.providers: one, two" in sentence(caught)


# --- importers ---------------------------------------------------------------------------------------

IMPORTER = """
    from rlm_mem.interchange import Claim, Format, Note, ImportProblem

    def sniff(head):
        if head.path.name.startswith("odd"):
            raise RuntimeError("odd names are too much")
        return Claim.SURE if head.suffix == ".leaf" or head.text.startswith("LEAF") else Claim.NO

    def read(file):
        with file.opened() as handle:
            text = handle.read(1000).decode()
        for number, line in enumerate(text.splitlines()[1:]):
            if line == "break":
                raise ValueError("a broken leaf")
            if line == "junk":
                yield 7
            else:
                yield Note(key=f"{number}", conversation_id=file.conversation, text=line, where=file.where)

    FORMAT = Format("leaf", sniff, read, "leaves")
"""


@pytest.fixture
def store(tmp_path: Path) -> ChunkStore:
    return ChunkStore(tmp_path / "brain" / "memory")


def test_an_importer_reads_its_files_and_its_failures_are_lines_of_the_report(
    install: Install, tmp_path: Path, store: ChunkStore
) -> None:
    install("leaf-press", IMPORTER, importers="leaf = FORMAT")
    install("torn", "import nothing_of_this_name", importers="torn = FORMAT")
    install("thing", "NOT_A_FORMAT = 7", importers="thing = NOT_A_FORMAT")
    install("thief", IMPORTER.replace('"leaf"', '"notes"'), importers="notes = FORMAT")
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.leaf").write_text("LEAF\nThe walnut has leaves.\n")
    (source / "b.md").write_text("LEAF\nThe oak has leaves.\n")
    (source / "c.leaf").write_text("LEAF\nThe elm has leaves.\njunk\nbreak\nThe ash has none.\n")
    (source / "odd.md").write_text("The birch has leaves.\n")
    report = import_source(store, source)
    assert report.formats == {"leaf": 3, "notes": 1}
    assert sorted(chunk.content for chunk in store.iter_chunks()) == [
        "The birch has leaves.",
        "The elm has leaves.",
        "The oak has leaves.",
        "The walnut has leaves.",
    ]
    told = {(problem.where, problem.reason.partition(" (package")[0]) for problem in report.problems}
    assert ("c.leaf", "the importer leaf") in told
    reasons = "\n".join(problem.reason for problem in report.problems)
    assert "the importer leaf (package leaf-press) returned int, which is not a record" in reasons
    assert "the importer leaf (package leaf-press) failed: ValueError: a broken leaf" in reasons
    assert "the importer leaf failed to inspect it: RuntimeError: odd names are too much" in reasons
    assert (
        "rlm_mem.importers: torn = torn:FORMAT (package torn) cannot be loaded: ModuleNotFoundError"
        in reasons
    )
    assert "(package thing) is not an importer" in reasons
    assert "its format 'notes' is the name of a built-in format" in reasons
    assert "Traceback" not in reasons
    assert report.problem_count == 6
    with pytest.raises(InputError, match=r"torn = torn:FORMAT \(package torn\) cannot be loaded"):
        import_source(store, source, format="torn")
    with pytest.raises(InputError, match=r"unknown format 'absent': use one of .*, leaf, "):
        import_source(store, source, format="absent")


# --- gauges ------------------------------------------------------------------------------------------


def test_a_gauge_is_listed_and_drawn_and_a_broken_one_is_named(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gauge = "GAUGE = '# Weather\\n\\n```gauge\\nchunks {{store.chunks}}\\n```\\n'"
    install("weather-vane", gauge, gauges="weather = GAUGE")
    install("thing", "GAUGE = b'bytes'", gauges="thing = GAUGE")
    assert "WEATHER" in Library().gauges()
    ChunkStore(tmp_path / "brain" / "memory").close()
    assert main(["--brain", str(tmp_path / "brain"), "hud", "weather"]) == 0
    assert "chunks 0" in capsys.readouterr().out
    with pytest.raises(InvalidConfig, match=r"thing = thing:GAUGE \(package thing\) is not a gauge"):
        Library().gauge("thing")


# --- what it costs -----------------------------------------------------------------------------------


def test_nothing_is_looked_for_while_every_name_is_built_in(tmp_path: Path) -> None:
    source = tmp_path / "memory.jsonl"
    source.write_text(
        '{"id":"m","created_at":"2026-01-01","scope":"user_global","entry_type":"note","content":"x","project_id":"p"}\n'
    )
    script = """
        import importlib.metadata
        def refused(**_):
            raise AssertionError("a scan")
        importlib.metadata.entry_points = refused
        import sys
        from rlm_mem.cli import main
        brain, source = sys.argv[1:]
        for command in (
            ["remember", "The walnut key hangs in the shed."],
            ["search", "walnut"],
            ["recall", "Where does the walnut key hang?"],
            ["recall", "Where does the walnut key hang?", "--llm", "offline"],
            ["import", source],
            ["hud"],
        ):
            assert main(["--brain", brain, *command]) == 0, command
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "brain"), str(source)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


# --- the sample --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``examples/plugin`` as pip installs it, without a network."""
    pytest.importorskip("hatchling", reason="the extra test is not installed: hatchling is missing")
    target = tmp_path_factory.mktemp("installed")
    copied = tmp_path_factory.mktemp("sources") / "plugin"
    # A copy, so that a build leaves nothing in the folder of the repository.
    shutil.copytree(SAMPLE, copied)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    subprocess.run(
        [*pip, "--no-index", "--no-deps", "--no-build-isolation", "--target", str(target), str(copied)],
        check=True,
        timeout=300,
    )
    return target


def test_the_sample_package_serves_the_command_and_python_and_passes_its_own_tests(
    sample: Path, tmp_path: Path
) -> None:
    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(sample)},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    clippings = tmp_path / "My Clippings.txt"
    clippings.write_text(
        "Deep Work (Cal Newport)\n"
        "- Your Highlight on page 14 | Location 180-182 | Added on Tuesday, 3 February 2026 21:15:07\n\n"
        "Deep work is becoming rare and valuable.\n==========\n"
    )
    assert "highlights of an e-reader: 1 file" in run("rlm_mem", "--brain", "brain", "import", str(clippings))
    recalled = run("rlm_mem", "--brain", "brain", "recall", "What is rare?", "--llm", "sample:first")
    assert "Deep work is becoming rare and valuable." in recalled
    script = tmp_path / "used.py"
    script.write_text(
        textwrap.dedent(
            f"""
            from rlm_mem import Memory
            from rlm_mem.interchange import import_source
            from rlm_mem.persona.library import Library
            assert Library().gauge("reading").name == "READING"
            with Memory.open("other", llm="sample:first") as memory:
                report = import_source(memory.store, {str(clippings)!r}, format="kindle")
                assert (report.created, report.problems) == (1, []), report
                result = memory.recall("What is rare?")
                print(result.content, result.chunk_ids == report.chunk_ids)
            """
        )
    )
    assert run("used") == "Deep work is becoming rare and valuable. True\n"
    assert "passed" in run(
        "pytest", "-q", "-p", "no:cacheprovider", str(SAMPLE / "tests"), "--rootdir", str(SAMPLE)
    )

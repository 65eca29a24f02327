"""What loading costs: `import rlm_mem` and `rlm-mem --help` stay light."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tests.house.sources import MODULES, SOURCE, listed, text

HEAVY = (
    "numpy",
    "toktok",
    "toktok_rs",
    "pydantic",
    "pydantic_monty",
    "msgspec",
    "Stemmer",
    "sqlite3",
    "openai",
    "anthropic",
)


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n' + ' '.join(sys.modules))"
    environ = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    return set(ran.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_by("import rlm_mem")
    assert "rlm_mem" in loaded
    assert loaded.isdisjoint({*HEAVY, "rich", "typer"})


def test_the_help_of_the_command_and_of_a_group_loads_nothing_heavy() -> None:
    loaded = loaded_by(
        "from rlm_mem.cli import main\nassert main(['--help']) == main(['store', '-h']) == 0\n"
        "import os\nassert 'OPENBLAS_NUM_THREADS' not in os.environ, 'called by another program'\n"
        "sys.argv[1:] = ['--help']\nassert main() == 0 and os.environ['OPENBLAS_NUM_THREADS'] == '1'\n"
        "from rlm_mem.own_process import environment_of_programs\n"
        "assert 'OPENBLAS_NUM_THREADS' not in environment_of_programs()\n"
        "assert environment_of_programs().items() <= os.environ.items()"
    )
    assert "rlm_mem.cli.overview" in loaded
    assert loaded.isdisjoint({*HEAVY, "rich", "typer", "typing", "re", "dataclasses"})


def test_the_version_loads_what_the_help_loads() -> None:
    loaded = loaded_by("from rlm_mem.cli import main\nassert main(['--version']) == 0")
    assert loaded.isdisjoint({*HEAVY, "rich", "typer", "typing", "re", "dataclasses"})


def test_opening_a_memory_loads_neither_numpy_nor_what_reads_settings_and_archives(tmp_path: Path) -> None:
    loaded = loaded_by(
        f"from rlm_mem import Memory\nMemory.open({str(tmp_path / 'brain')!r}).close()\n"
        "import gc, os\nassert 'OPENBLAS_NUM_THREADS' not in os.environ\n"
        "assert gc.isenabled() and gc.get_threshold()[0] < 10_000"
    )
    assert "rlm_mem.store.local.local_index" in loaded
    assert loaded.isdisjoint({"numpy", "tomllib", "difflib", "mcp", "pydantic", "typer"})
    assert loaded.isdisjoint({"dataclasses", "copy", "logging", "json", "base64", "random"})


UNWRITTEN = {
    *(f"rlm_mem.store.core.{name}" for name in ("writer", "succession", "integrity", "joined_store")),
    *(f"rlm_mem.store.local.{name}" for name in ("transaction", "rows", "redo", "audit", "sync", "views")),
    *(
        f"rlm_mem.text.{name}"
        for name in ("secrets", "statements", "differences", "stated_changes", "tokens")
    ),
    "rlm_mem.store.local.snapshot_build",
}
"""What a process that only reads does not need."""


def test_opening_and_searching_a_memory_load_nothing_of_writing_checking_and_comparing(
    tmp_path: Path,
) -> None:
    opened = f"from rlm_mem import Memory\nmemory = Memory.open({str(tmp_path / 'brain')!r})\n"
    loaded = loaded_by(f"{opened}memory.remember('Dana moved the team to PostgreSQL.')\nmemory.close()")
    assert loaded >= {"rlm_mem.store.core.writer", "rlm_mem.store.local.transaction", "rlm_mem.text.secrets"}
    opened_only = loaded_by(f"{opened}memory.close()")
    assert opened_only.isdisjoint({*UNWRITTEN, "graphlib"})
    searched = loaded_by(f"{opened}assert memory.search('Where did Dana move the team?')\nmemory.close()")
    assert searched.isdisjoint({*UNWRITTEN, "graphlib"})
    assert {".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in MODULES} >= UNWRITTEN


def test_the_first_search_compiles_few_patterns(tmp_path: Path) -> None:
    loaded_by(
        f"from rlm_mem import Memory\nmemory = Memory.open({str(tmp_path / 'brain')!r})\n"
        "memory.remember('Dana prefers trains.')\nmemory.remember('The team prefers trains to planes.')\n"
        "memory.close()"
    )
    loaded_by(
        f"import re, rlm_mem\nmemory = rlm_mem.Memory.open({str(tmp_path / 'brain')!r})\n"
        "import numpy, rlm_mem.search.api\nmade, compile_ = [], re._compiler.compile\n"
        "def compiled(*given):\n    made.append(given[0])\n    return compile_(*given)\n"
        "re._compiler.compile = compiled\nassert memory.search('how does Dana travel')\n"
        "assert len(made) < 30, made\nmemory.close()"
    )


def test_loading_what_recalls_and_remembers_compiles_few_patterns() -> None:
    loaded_by(
        "import re, logging, string, statistics, msgspec, numpy, pydantic_monty, rlm_mem.text.analysis\n"
        "made, compile_ = [], re._compiler.compile\n"
        "def compiled(*given):\n    made.append(given[0])\n    return compile_(*given)\n"
        "re._compiler.compile = compiled\n"
        "import rlm_mem.ingest.remember, rlm_mem.offline.model, rlm_mem.recall.recall\n"
        "assert len(made) < 30, made"
    )


def test_what_recalls_and_remembers_defines_no_data_classes_but_the_result(tmp_path: Path) -> None:
    """Each takes half a millisecond at every start; `rlm_mem.record` has what takes none."""
    loaded_by(
        "import dataclasses\nmade, define = [], dataclasses._process_class\n"
        "def defined(kind, *given):\n    made.append(f'{kind.__module__}.{kind.__name__}')\n"
        "    return define(kind, *given)\n"
        "dataclasses._process_class = defined\nfrom rlm_mem.cli import main\n"
        f"at = ['--brain', {str(tmp_path / 'brain')!r}]\n"
        "assert main([*at, 'remember', 'Dana prefers trains.']) == 0\n"
        "assert main([*at, 'recall', 'What does Dana prefer?']) == 0\n"
        # For `asdict` of a record, Python 3.12 and later make its fields in the name of `rlm_mem.record`.
        "made = [name for name in made if name.startswith('rlm_mem') and 'rlm_mem.record.' not in name]\n"
        "assert made == ['rlm_mem.recall.recall.RecallResult'], made"
    )


def test_remembering_a_text_loads_nothing_of_folders(tmp_path: Path) -> None:
    loaded = loaded_by(
        "from rlm_mem.cli import main\n"
        f"assert main(['--brain', {str(tmp_path / 'brain')!r}, 'remember', 'Dana prefers trains.']) == 0"
    )
    assert "rlm_mem.ingest.remember" in loaded
    assert loaded.isdisjoint({"rlm_mem.interchange.folders", "rlm_mem.interchange.documents", "xml.parsers"})


def test_a_recall_loads_of_the_tiered_memories_what_programs_ask(tmp_path: Path) -> None:
    loaded = loaded_by(
        f"from rlm_mem import Memory\nwith Memory.open({str(tmp_path / 'brain')!r}) as memory:\n"
        "    memory.remember('Dana prefers trains.')\n    memory.recall('What does Dana prefer?')"
    )
    assert "rlm_mem.continuum.query" in loaded
    assert loaded.isdisjoint({"rlm_mem.continuum.system", "rlm_mem.continuum.review", "importlib.resources"})


def test_the_hook_of_a_prompt_loads_nothing_of_capturing(tmp_path: Path) -> None:
    brain = str(tmp_path / "brain")
    loaded_by(
        f"from rlm_mem import Memory\nwith Memory.open({brain!r}) as memory:\n"
        "    memory.remember('Dana prefers trains to planes for trips.')"
    )
    event = {"session_id": "s1", "cwd": "/", "prompt": "Does Dana prefer trains to planes?"}
    event["transcript_path"] = str(tmp_path / "s1.jsonl")
    (tmp_path / "s1.jsonl").touch()
    loaded = loaded_by(
        f"import io\nsys.stdin = io.TextIOWrapper(io.BytesIO({json.dumps(event).encode()!r}))\n"
        "from rlm_mem.cli import main\n"
        f"assert main(['hook', 'user-prompt', '--brain', {brain!r}]) == 0"
    )
    assert "numpy" in loaded
    assert loaded.isdisjoint({"rlm_mem.capture.sessions", "rlm_mem.mcp.clients", "rlm_mem.text.secrets"})
    assert loaded.isdisjoint(
        {"typer", "rich", "re2", "dataclasses", "hashlib", "shutil", "subprocess", "tomllib"}
    )


def test_a_first_search_loads_neither_archives_nor_locales_nor_loggers(tmp_path: Path) -> None:
    opened = f"from rlm_mem import Memory\nmemory = Memory.open({str(tmp_path / 'brain')!r})\n"
    loaded_by(f"{opened}memory.remember('Dana moved the team to PostgreSQL.')\nmemory.close()")
    loaded = loaded_by(f"{opened}assert memory.search('Where did Dana move the team?')\nmemory.close()")
    assert "numpy" in loaded
    assert loaded.isdisjoint({"shutil", "bz2", "locale", "calendar", "dataclasses", "logging", "json"})
    assert "numpy.typing" not in loaded, "types of arrays are for type checkers"


def test_a_first_search_hardly_collects_garbage_and_keeps_what_the_program_has_set(tmp_path: Path) -> None:
    opened = (
        "import gc\ngc.set_threshold(700, 5, 6)\nbefore = gc.get_stats()[0]['collections']\n"
        f"from rlm_mem import Memory\nmemory = Memory.open({str(tmp_path / 'brain')!r})\n"
        "memory.search('Where did Dana move the team?')\nmade = gc.get_stats()[0]['collections'] - before\n"
        "assert gc.get_threshold() == (700, 5, 6) and gc.get_freeze_count() == 0\nassert made < 40, made\n"
        "memory.close()"
    )
    loaded_by(opened)


def test_a_command_loads_no_other_commands() -> None:
    loaded = loaded_by("from rlm_mem.cli import main\nassert main(['--brain', 'nowhere', 'tags']) == 1")
    modules = {name for name in loaded if name.startswith("rlm_mem.cli.")}
    assert "rlm_mem.cli.read" in modules
    assert modules.isdisjoint({"rlm_mem.cli.agents", "rlm_mem.cli.continuum", "rlm_mem.cli.persona"})


def test_the_help_of_a_subcommand_loads_nothing_heavy() -> None:
    loaded = loaded_by("from rlm_mem.cli import main\nassert main(['recall', '--help']) == 0")
    # Settings are structs: loading msgspec takes less time than defining as many data classes.
    assert loaded.isdisjoint({*HEAVY} - {"msgspec"})


def test_every_name_of_a_package_that_loads_late_is_there_and_no_module_takes_its_place() -> None:
    places = [path for path in MODULES if path.name == "__init__.py" and "= loader(" in text(path)]
    assert len(places) > 5
    wrong = []
    for path in places:
        package = import_module(".".join(path.parent.relative_to(SOURCE).parts))
        for name in package.__all__:
            if (path.parent / f"{name}.py").exists() or (path.parent / name).is_dir():
                wrong.append(f"{package.__name__}.{name} is also the name of a module")
            elif isinstance(getattr(package, name, None), ModuleType | None):
                wrong.append(f"{package.__name__}.{name} is not there")
    assert not wrong, listed(wrong)


def test_the_last_collection_of_the_interpreter_spares_types_of_structs() -> None:
    """A checker that was registered before the package runs after the package's own."""
    code = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 1000)); import rlm_mem.chunk"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "True"

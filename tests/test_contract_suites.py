"""The suites of ``rlm_mem.testing`` notice what is wrong: each fault here fails the test that is about it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FAULTY = '''
import time
from contextlib import contextmanager

import pytest

from rlm_mem.config import Config
from rlm_mem.interchange import Claim, Format, Note
from rlm_mem.models import Completion
from rlm_mem.store.core import backends
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.local.local_backend import LocalBackend
from rlm_mem.testing import BackendContract, CandidateSourceContract, ImporterContract, ModelContract


class Greedy(ImporterContract):
    @pytest.fixture
    def importer(self):
        def read(file):
            with file.opened() as handle:
                yield Note("", f"once {time.monotonic_ns()}", handle.read(10_000).decode(), file.where)
        return Format("greedy", lambda head: Claim.SURE, read, "everything")

    @pytest.fixture
    def example(self):
        return "a.greedy", b"Some text of a greedy format."


class TestGreedy(Greedy):
    pass


class Careless:
    name = "careless"

    def complete(self, messages, **options):
        if options.get("timeout") == 0.001:
            time.sleep(1.5)
        return Completion("text", model=self.name)


class TestCareless(ModelContract):
    time_limit = 1.0

    @pytest.fixture
    def model(self):
        return Careless()


class Forgetful(LocalBackend):
    """Counts no read, undoes no failed transaction, keeps no former version, and hides a term from search."""

    def count_read(self, *_):
        pass

    def former_versions(self, *_, **__):
        return []

    @contextmanager
    def transaction(self, namespace):
        failed = None
        with super().transaction(namespace) as made:
            try:
                yield made
            except Exception as error:
                failed = error
        if failed:
            raise failed

    def candidate_source(self, namespace):
        source = super().candidate_source(namespace)
        counted = source.term_counts
        source.term_counts = lambda terms: {term: count + 1 for term, count in counted(terms).items()}
        return source


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    monkeypatch.setattr(backends, "_FOLDER", f"{__name__}:Forgetful")


class TestForgetful(BackendContract):
    several_processes = False

    @pytest.fixture
    def place(self, tmp_path):
        return tmp_path / "memory"


class TestForgetfulSearch(CandidateSourceContract):
    @pytest.fixture
    def place(self, tmp_path):
        return tmp_path / "memory"
'''

NOTICED = {
    "TestGreedy::test_it_is_found_by_its_name",
    "TestGreedy::test_it_claims_no_foreign_file",
    "TestCareless::test_a_completion_has_text_usage_and_time",
    "TestCareless::test_a_conversation_is_taken_as_well_as_a_text",
    "TestCareless::test_text_arrives_by_on_text_whole_and_in_the_callers_thread",
    "TestCareless::test_a_timeout_is_kept",
    "TestForgetful::test_reads_are_counted_and_are_no_change",
    "TestForgetful::test_an_update_is_a_new_revision_and_the_former_one_is_kept",
    "TestForgetful::test_a_transaction_appears_whole_or_not_at_all",
    "TestForgetfulSearch::test_figures_equal_a_recount",
}
HELD = {
    "TestCareless::test_it_answers_several_threads",
    "TestForgetful::test_a_stale_revision_is_refused",
    "TestForgetful::test_namespaces_are_isolated",
    "TestForgetfulSearch::test_the_best_are_the_best",
}


def test_each_fault_fails_the_test_that_is_about_it_and_no_other_promise(tmp_path: Path) -> None:
    (tmp_path / "test_faulty.py").write_text(FAULTY, encoding="utf-8")
    chosen = " or ".join(sorted(name.partition("::")[2] for name in NOTICED | HELD))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rA",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            "-k",
            chosen,
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=dict(os.environ),
    )
    ended: dict[str, set[str]] = {"PASSED": set(), "FAILED": set(), "ERROR": set()}
    for word, name in re.findall(
        r"^(PASSED|FAILED|ERROR) \S*?test_faulty\.py::(\S+)", done.stdout, re.MULTILINE
    ):
        ended[word].add(name)
    assert ended["ERROR"] == set(), done.stdout
    assert ended["FAILED"] >= NOTICED, done.stdout
    assert ended["PASSED"] >= HELD, done.stdout

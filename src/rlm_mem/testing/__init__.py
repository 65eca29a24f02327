"""Contract suites: tests for packages that extend RLM-MEM, to be run against their own backend, importer or model.

A suite is a class of pytest tests. Subclass it in a test module, provide its fixtures, and run pytest::

    from rlm_mem.testing import BackendContract

    class TestMyBackend(BackendContract):
        @pytest.fixture
        def place(self, tmp_path):
            return f"mine://{tmp_path}"

RLM-MEM's own backends, importers and models pass the same suites. docs/extending.md shows one of each kind. Only this
package needs pytest.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    "rlm_mem.testing.backend",
    "rlm_mem.testing.candidates",
    "rlm_mem.testing.importer",
    "rlm_mem.testing.model",
)

from rlm_mem.testing.backend import BackendContract  # noqa: E402 - asserts of these modules explain themselves
from rlm_mem.testing.candidates import CandidateSourceContract  # noqa: E402
from rlm_mem.testing.importer import ImporterContract  # noqa: E402
from rlm_mem.testing.model import ModelContract  # noqa: E402

__all__ = ["BackendContract", "CandidateSourceContract", "ImporterContract", "ModelContract"]

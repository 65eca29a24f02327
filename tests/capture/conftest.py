"""The command line in process, with a brain of its own."""

from tests.cli.conftest import brain, memory, run  # noqa: F401 - fixtures

"""The options of every command (brain, namespace, JSON), and opening the memory that they name."""

from __future__ import annotations

import getpass
import inspect
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Self, get_origin, get_type_hints

import typer
from msgspec.structs import replace

import rlm_mem
from rlm_mem import capture
from rlm_mem.cli import options
from rlm_mem.cli.namespaces import named_namespace, option_value
from rlm_mem.cli.terminal import Columns, Rows, amount, print_json, print_table, print_text, progress
from rlm_mem.config import locate
from rlm_mem.dsn import checked_place, shown_dsn
from rlm_mem.errors import InputError, NotFoundError, ServerAway
from rlm_mem.record import FrozenRecord

_MAX_LISTED = 5  # maximum number of other namespaces that are listed if one is empty


class Where(FrozenRecord, frozen=True):
    """The memory that a command uses: ``rlm-mem --brain PATH --namespace NAME search …``; these options may also follow
    the command.

    The first parameter of a command's function is of this class or a subclass. Fields that are annotated with an option
    are options of the command.
    """

    brain: options.Brain = None
    namespace: options.Namespace = None

    @staticmethod
    def named(namespace: str | None) -> str | None:
        """Return the namespace that the option names."""
        return named_namespace(namespace)

    @property
    def named_brain(self) -> Path | str | None:
        """The folder or DSN that the options name, or None."""
        return None if self.brain is None else checked_place(self.brain)

    @property
    def place(self) -> Path | str:
        """The folder or DSN of the memory that the command works on."""
        return locate(self.named_brain)

    def at(self, brain: Path | str | None = None, namespace: str | None = None) -> Self:
        """Return the call for another brain or namespace; None means unchanged."""
        return replace(
            self,
            brain=self.brain if brain is None else str(brain),
            namespace=self.namespace if namespace is None else namespace,
        )

    def undo_command(self, change: str) -> str:
        """Return the command that undoes a change in the namespace of this call."""
        where = "" if self.namespace is None else f" --namespace {option_value(self.namespace)}"
        return f"rlm-mem{where} undo {change}"

    def open(self, *, create: bool = False, llm: str | None = None) -> rlm_mem.Memory:
        """Open the memory that the options name.

        Args:
            create: create the folders if there is no memory yet; for commands that write.
            llm: the model that writes the programs; None means the configured one.

        Raises:
            NotFoundError: there is no memory at that place, and ``create`` is False.
        """
        place = self.place
        named: dict[str, Any] = {"actor": "cli"}
        if isinstance(place, Path):
            if place.is_file():
                raise InputError(
                    f"{place} is a file: a memory is a folder", hint="--brain PATH names the folder"
                )
            if not create and not (place / "memory").is_dir():
                raise NotFoundError(
                    f"there is no memory at {place}",
                    hint=f"rlm-mem store init {shlex.quote(str(place))} creates one; --brain PATH names another place",
                )
            # A memory that cannot be written (read-only disk, another owner) can still be read.
            named["read_only"] = not create and not os.access(place / "memory", os.W_OK)
        if llm:
            named["llm"] = llm
        if self.namespace is not None:
            named["namespace"] = self.namespace
        return rlm_mem.Memory.open(place, **named)

    @contextmanager
    def writing(self, *, dry_run: bool) -> Iterator[rlm_mem.Memory]:
        """Open the memory for writing, and create it if missing; a dry run then uses an empty temporary one."""
        place = self.place
        if dry_run and isinstance(place, Path) and not (place / "memory").is_dir():
            with TemporaryDirectory() as folder, self.at(Path(folder)).open(create=True) as memory:
                yield memory
        else:
            with self.open(create=not dry_run) as memory:
                yield memory


class Call(Where, frozen=True):
    """The memory that a command uses, and whether to print JSON."""

    json: options.Json = False

    @contextmanager
    def with_progress(
        self, label: str, unit: str
    ) -> Iterator[tuple[rlm_mem.Memory, Callable[[int, int], None]]]:
        """Open the memory and a progress bar; arguments are those of ``progress``."""
        with self.open() as memory, progress(label, unit=unit, quiet=self.json) as update:
            yield memory, update

    def printed_json(self, data: Any) -> bool:
        """Print the data if ``--json`` was given, and return whether it was."""
        if self.json:
            print_json(data)
        return self.json

    def report(self, data: Any, shown: str | Callable[[], None], style: str = "") -> None:
        """Print the result of the command: the data with ``--json``, else a sentence, or what a function prints."""
        if self.printed_json(data):
            return
        if isinstance(shown, str):
            print_text(shown, style)
        else:
            shown()

    def report_table(self, data: Any, columns: Columns, rows: Rows, *, none: str = "") -> None:
        """Print the result of the command: the data with ``--json``, else a table (``print_table``)."""
        self.report(data, lambda: print_table(columns, rows, none=none))


class BrainCall(Call, frozen=True):
    """The call of a command about a brain with all its namespaces."""

    namespace: str | None = None


class JsonCall(BrainCall, frozen=True):
    """The call of a command that uses no memory."""

    brain: str | None = None


def with_shared_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adapt a function for Typer: its own options, then the shared ones of its first parameter."""
    signature = inspect.signature(function, eval_str=True)
    first, *own = signature.parameters.values()
    kind: type[Where] = first.annotation
    hints = get_type_hints(kind, include_extras=True)
    names = dict.fromkeys(name for one in kind.__mro__ for name in inspect.get_annotations(one))
    shared = {name: hints[name] for name in names if get_origin(hints[name]) is Annotated}
    defaults = inspect.signature(kind).parameters

    def run(ctx: typer.Context, **values: Any) -> None:
        before = ctx.find_object(Where) or Where()
        given = {name: values.pop(f"shared_{name}") for name in shared}
        for name in ("brain", "namespace"):
            if given.get(name) is None:  # an empty name is refused, not taken for none
                given[name] = getattr(before, name)
        given["namespace"] = kind.named(given["namespace"])
        function(kind(**given), **values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("ctx", keyword, annotation=typer.Context)
    parameters = [
        context,
        *(one.replace(kind=keyword) for one in own),
        *(
            inspect.Parameter(f"shared_{name}", keyword, default=defaults[name].default, annotation=hint)
            for name, hint in shared.items()
        ),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect.signature
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def other_places(memory: rlm_mem.Memory) -> str:
    """Describe where else memories are: in the namespace of this folder's project, or in others if this one is empty.

    If there are none at all, describe how to remember the first; empty if this namespace has some.
    """
    try:
        counts = dict(memory.store.namespaces())
    except ServerAway as error:
        counts = dict(error.namespaces)
    current, project = memory.store.namespace, capture.project_of()
    if project is not None and project.namespace != current and counts.get(project.namespace):
        count = amount(counts[project.namespace], "memory")
        return f"the project of this folder has {count}: use --namespace project"
    if counts.get(current):
        return ""
    largest = sorted((one for one in counts.items() if one[1]), key=lambda one: -one[1])[:_MAX_LISTED]
    named = ", ".join(f"{name} ({count:,})" for name, count in largest)
    if not named:
        return "nothing is remembered yet: rlm-mem remember TEXT, or rlm-mem remember --folder PATH"
    return f"the namespace {current} is empty; memories are in: {named}"


def login_name() -> str:
    """The name of the user who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name, as in some containers
        return "unknown"


def shown_place(place: Path | str) -> str:
    """Return a folder or DSN as text for messages, without a password."""
    return shown_dsn(place) if isinstance(place, str) else str(place)

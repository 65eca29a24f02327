"""Finds personalities, sliders and gauges; the files of a brain override the defaults of the package."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from rlm_mem.chunk import DEFAULT_NAMESPACE, normalise_unicode
from rlm_mem.config import locate
from rlm_mem.dsn import checked_place, shown_dsn
from rlm_mem.errors import InvalidConfig, NotFoundError
from rlm_mem.extensions import GAUGES, Extension, extension, extensions
from rlm_mem.persona.documents import comparable_name, document_text
from rlm_mem.persona.gauges import Gauge, parse_gauge
from rlm_mem.persona.personalities import Personality, parse_personality
from rlm_mem.persona.sliders import Slider, parse_slider
from rlm_mem.store.core.brain_files import BrainFiles
from rlm_mem.store.core.chunk_store import ChunkStore, open_store
from rlm_mem.store.local.brain_folder import LocalBrainFiles

if TYPE_CHECKING:
    from rlm_mem.store.local.transaction import Transaction

BASE = "BASE"
KINDS = ("personalities", "sliders", "gauges")
"""Folders of a brain with files of each kind."""
ORDER = (
    *("verbosity", "humor", "creativity", "morality", "directness", "technicality"),
    *("soul", "identity", "tools", "user"),
)
"""Display order of the package's sliders; those of a brain follow, sorted by name."""
_NAME = re.compile(r"\w(?:[\w -]{0,62}\w)?")


@dataclass(frozen=True)
class _Source:
    """A Markdown file of the package or (``brain``) of a brain."""

    name: str
    where: str
    brain: BrainFiles | None = None

    def text(self) -> str:
        """The text of the file; raises InvalidConfig if it cannot be read or is a link out of its folder."""
        if self.brain is not None:
            _check_link(self.brain.path(self.name))
        try:
            data = self.brain.read(self.name) if self.brain else Path(self.name).read_bytes()
        except OSError as error:
            raise InvalidConfig(str(error)) from None
        if data is None:  # the file was removed after it was listed
            raise InvalidConfig(f"{self.where} cannot be read: it was removed")
        return document_text(data, self.where)


@dataclass(frozen=True)
class Survey:
    """The valid personalities, sliders and gauges, and an error for each invalid file."""

    modes: list[Personality]
    sliders: list[Slider]
    gauges: list[str]
    invalid: list[InvalidConfig]


class Library:
    """The personalities, sliders and gauges of one brain.

    A file of the brain overrides the package's file of the same name, ignoring case; a new file in
    ``brain/personalities/`` is available at once. Files are read on demand.

    Args:
        brain: the files of an open store (``Backend.files``), or a brain folder, which need not exist; None: the
            defaults of the package only.
    """

    def __init__(self, brain: BrainFiles | Path | str | None = None) -> None:
        self.brain: BrainFiles | None
        if isinstance(brain, str | Path):
            place = checked_place(brain)
            if isinstance(place, str):
                raise InvalidConfig(
                    f"{shown_dsn(place)} is a database: its persona comes from an open memory",
                    hint="use Memory.open(dsn).persona(), or located_files",
                )
            self.brain = _local(place)
        else:
            self.brain = brain
        self._sliders: tuple[dict[str, Slider], dict[str, InvalidConfig]] | None = None

    # --- listing --------------------------------------------------------------------------------

    def modes(self) -> list[str]:
        """Names of the personalities, BASE first."""
        return sorted(self._files("personalities"), key=lambda name: (name != BASE, name))

    def sliders(self) -> dict[str, Slider]:
        """All sliders by name, in display order.

        Raises:
            InvalidConfig: a slider file is invalid.
        """
        valid, invalid = self._read_sliders()
        for error in invalid.values():
            raise error
        return valid

    def _read_sliders(self) -> tuple[dict[str, Slider], dict[str, InvalidConfig]]:
        """Valid sliders by name, and the errors of invalid files."""
        if self._sliders is None:
            valid, invalid = dict[str, Slider](), dict[str, InvalidConfig]()
            sources = {name.lower(): (source, name) for name, source in self._files("sliders").items()}
            for name in sorted(sources, key=lambda one: (ORDER.index(one) if one in ORDER else 99, one)):
                source, title = sources[name]
                try:
                    valid[name] = parse_slider(source.text(), title, source.where)
                except InvalidConfig as error:
                    invalid[name] = error
            self._sliders = valid, invalid
        return self._sliders

    def survey(self) -> Survey:
        """List all valid files, and the errors of the others."""
        sliders, invalid = self._read_sliders()
        found = Survey([], list(sliders.values()), [], list(invalid.values()))
        for name in self.modes():
            try:
                found.modes.append(self.personality(name))
            except InvalidConfig as error:
                found.invalid.append(error)
        for name in self.gauges():
            try:
                found.gauges.append(self.gauge(name).name)
            except InvalidConfig as error:
                found.invalid.append(error)
        found.invalid[:] = {str(one): one for one in found.invalid}.values()
        return found

    def gauges(self) -> list[str]:
        """Names of all gauges, including those of other packages, LIVEHUD first."""
        names = {*self._files("gauges"), *(comparable_name(one.name) for one in extensions(GAUGES))}
        return sorted(names, key=lambda name: (name != "LIVEHUD", name))

    # --- reading one ----------------------------------------------------------------------------------

    def slider(self, dimension: str) -> Slider:
        """Return a slider by name, ignoring case.

        Raises:
            InvalidConfig: the name or the file is invalid. NotFoundError: there is no such slider.
        """
        slider_name = _checked_name(dimension, "slider").lower()
        found = self.sliders().get(slider_name)
        if found is None:
            raise _not_found("slider", dimension, self.sliders())
        return found

    def personality(self, mode: str) -> Personality:
        """Return a personality as defined by its file, with validated values (see ``find_mode`` for names).

        Raises:
            InvalidConfig: the name is invalid, a value is outside its range, or a slider is unknown.
            NotFoundError: there is no such personality.
        """
        name = self.find_mode(mode)
        source = self._files("personalities")[name]
        made = parse_personality(source.text(), name, source.where)
        for slider, value in made.values.items():
            place = f"{made.where} line {made.lines[slider]}"
            valid, invalid = self._read_sliders()
            if slider in invalid:
                raise invalid[slider]
            known = valid.get(slider)
            if known is None:
                raise InvalidConfig(f"{place}: there is no slider {slider!r:.60}", hint=_hint(slider, valid))
            known.checked(value, f"{place}: {known.title}")
        return made

    def find_mode(self, mode: str) -> str:
        """The full name of a mode, given in any case or by some of its words if unambiguous (``research``).

        Raises:
            InvalidConfig: the name is invalid or ambiguous. NotFoundError: there is no such mode.
        """
        mode_name = _checked_name(mode, "mode")
        names = self._files("personalities")
        if mode_name in names:
            return mode_name
        partly = [name for name in names if _within(name.split("_"), mode_name)]
        if len(partly) > 1:
            raise InvalidConfig(
                f"mode {mode!r:.60} is ambiguous: {' or '.join(sorted(partly))}", hint="write the whole name"
            )
        if not partly:
            raise _not_found("mode", mode, names)
        return partly[0]

    def gauge(self, name: str) -> Gauge:
        """Return a gauge by name, ignoring case.

        Raises:
            InvalidConfig: the name or the file is invalid. NotFoundError: there is no such gauge.
        """
        gauge_name = _checked_name(name, "gauge")
        source = self._files("gauges").get(gauge_name)
        if source is not None:
            return parse_gauge(source.text(), gauge_name, source.where)
        found = extension(GAUGES, gauge_name.lower(), InvalidConfig)
        if found is None:
            raise _not_found("gauge", name, self.gauges())
        return _installed_gauge(found, gauge_name)

    # --- modes over BASE ------------------------------------------------------------------------------

    def defaults(self) -> dict[str, int]:
        """The value of every slider in BASE, else the slider's default."""
        base_values = self.personality(BASE).values
        return {name: base_values.get(name, slider.default) for name, slider in self.sliders().items()}

    def values(self, mode: str) -> dict[str, int]:
        """The value of every slider in a mode: that of the mode, else of BASE, else the slider's default."""
        return {**self.defaults(), **self.personality(mode).values}

    # --- files ----------------------------------------------------------------------------------------

    def _files(self, kind: str) -> dict[str, _Source]:
        """Files by name; those of the brain override those of the package."""
        found = {comparable_name(path.stem): _Source(str(path), str(path)) for path in _package(kind)}
        if self.brain is not None:
            for name in _markdown(self.brain, kind):
                stem = normalise_unicode("NFC", PurePosixPath(name).stem)
                if not _NAME.fullmatch(stem) or stem.upper() == "README":
                    continue  # not a valid name, or a description of the folder
                found[comparable_name(stem)] = _Source(name, self.brain.where(name), self.brain)
        return found

    def copy_defaults(self) -> list[str]:
        """Copy the package's files into the brain, except those it already has; returns the names of new files."""
        if self.brain is None:
            raise InvalidConfig("there is no brain to copy the defaults to")
        written = []
        for kind in KINDS:
            existing = {PurePosixPath(name).stem.upper() for name in _markdown(self.brain, kind)}
            for path in _package(kind):
                # A file that another process creates in the meantime is not overwritten.
                if path.stem.upper() not in existing and self.brain.create(
                    f"{kind}/{path.name}", path.read_bytes()
                ):
                    written.append(f"{kind}/{path.name}")
        return written


@contextmanager
def located_files(
    brain: Path | str | None = None, *, namespace: str | None = None, read_only: bool = False
) -> Iterator[BrainFiles]:
    """Open the files of a brain: a folder, which need not exist and whose store is not opened, or a database.

    Args:
        brain: the folder or DSN; None: searched as by the command line.
        namespace: of the persona in a database; None: the configured one. A folder has one persona for all.
    """
    place = locate(brain)
    if isinstance(place, Path):
        yield _local(place)
        return
    with open_store(place, namespace=namespace, read_only=read_only, actor="persona") as store:
        yield store.files


def _local(folder: Path) -> LocalBrainFiles:
    if not (folder / "memory" / "chunks").is_dir():
        return LocalBrainFiles(folder / "memory", DEFAULT_NAMESPACE, durable=False)
    opening = _Opening(folder)
    return LocalBrainFiles(
        folder / "memory", DEFAULT_NAMESPACE, durable=False, actor="persona", begin=opening.begin,
        present=lambda: opening.transaction,
    )  # fmt: skip


class _Opening:
    """Opens the store of a folder for each change, since most uses of a persona only read and need no store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.transaction: Transaction | None = None

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        """A transaction of the store, which is closed at its end."""
        with ChunkStore(self._folder / "memory") as store:
            try:
                with store.backend.transaction(DEFAULT_NAMESPACE) as transaction:
                    self.transaction = cast("Transaction", transaction)  # of a folder
                    yield self.transaction
            finally:
                self.transaction = None


def load_personality(mode: str, brain: Path | str | None = None) -> dict[str, Any]:
    """Load a personality from its Markdown file (docs/spec/persona.md, Personalities).

    Args:
        mode: ``BASE``, ``RESEARCH_ANALYST``, …; any file of ``brain/personalities/``.
        brain: the brain folder or a DSN; None: searched as by the command line (``RLM_MEM_BRAIN``, else the nearest
            ``brain/``).

    Returns:
        ``mode``, ``title``, ``sliders`` (every slider's value, applied over BASE), ``configuration`` (the file's own
        values), ``description``, ``instructions``, ``activated_when``, ``path``.

    Raises:
        InvalidConfig: the name or the file is invalid. NotFoundError: there is no such mode.
    """
    with located_files(brain, read_only=True) as files_of_brain:
        library = Library(files_of_brain)
        made = library.personality(mode)
        values = library.values(made.name)
    return {
        "mode": made.name,
        "title": made.title,
        "sliders": values,
        "configuration": dict(made.values),
        "description": made.description,
        "instructions": made.instructions,
        "activated_when": made.activated_when,
        "path": made.where,
    }


def load_slider(dimension: str, brain: Path | str | None = None) -> dict[str, Any]:
    """Load a slider from its Markdown file (docs/spec/persona.md, Sliders).

    Args:
        dimension: ``Creativity``, …, in any letter case; any file of ``brain/sliders/``.
        brain: as in ``load_personality``.

    Returns:
        ``dimension``, ``name``, ``range`` (low, high), ``default``, ``description``, ``examples`` (value → meaning),
        ``levels``, ``shotgun_tokens``.

    Raises:
        InvalidConfig: the name or the file is invalid. NotFoundError: there is no such slider.
    """
    with located_files(brain, read_only=True) as files_of_brain:
        return Library(files_of_brain).slider(dimension).to_dict()


def _installed_gauge(found: Extension, name: str) -> Gauge:
    """The gauge of another package, whose entry point is its Markdown text."""
    text = found.load(InvalidConfig)
    if not isinstance(text, str):
        raise InvalidConfig(
            f"the entry point {found} is not a gauge: its Markdown text was expected, not {type(text).__name__}"
        )
    return parse_gauge(text, name, f"gauge {found.name} of the package {found.package}")


def _package(kind: str) -> list[Path]:
    folder = Path(str(files("rlm_mem") / "persona" / "defaults" / kind))
    return sorted(path for path in folder.iterdir() if path.suffix == ".md")


def _markdown(brain: BrainFiles, kind: str) -> list[str]:
    return [name for name in brain.names(kind) if name.lower().endswith(".md")]


def _check_link(path: Path | None) -> None:
    """Refuse links out of the folder: brains are cloned and shared, and prompts must not include other files."""
    if path is None or not (path.is_symlink() or path.parent.is_symlink()):
        return
    if not path.resolve().is_relative_to(path.parent.parent.resolve() / path.parent.name):
        raise InvalidConfig(
            f"{path} is a link out of {path.parent}", hint="replace the link by the file itself"
        )


def _checked_name(name: str, what: str) -> str:
    """A name in upper case with underscores, validated so that it cannot be a path."""
    bare = normalise_unicode("NFC", name.strip().removesuffix(".md")) if isinstance(name, str) else ""
    if not _NAME.fullmatch(bare):
        raise InvalidConfig(
            f"{name!r:.80} is not a valid name of a {what}",
            hint="use letters, digits, spaces, - and _, at most 64 of them",
        )
    return comparable_name(bare)


def _within(words: list[str], phrase: str) -> bool:
    """Whether some words are consecutive words of a name."""
    phrase_words = phrase.split("_")
    return any(words[at : at + len(phrase_words)] == phrase_words for at in range(len(words)))


def _not_found(what: str, name: str, known: Iterable[str]) -> NotFoundError:
    return NotFoundError(f"there is no {what} {name.strip()!r:.60}", hint=_hint(name, known))


def _hint(name: str, known: Iterable[str]) -> str:
    names = {one.upper(): one for one in known}
    close = difflib.get_close_matches(comparable_name(name), names, n=1)
    return f"did you mean {names[close[0]]}?" if close else f"use one of {', '.join(names.values())}"

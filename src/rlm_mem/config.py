"""Settings: defaults < ``brain/config.toml`` < environment (``RLM_MEM_SECTION_NAME``) < arguments.

Each section is a frozen dataclass of plain fields. The range of a field is in its metadata and checked for every
source of the value.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from rlm_mem.dsn import checked_place, shown_dsn
from rlm_mem.errors import InvalidConfig

__all__ = [
    "Config",
    "ContinuumConfig",
    "IngestConfig",
    "LLMConfig",
    "PostgresConfig",
    "LogConfig",
    "RecallConfig",
    "SandboxConfig",
    "SearchConfig",
    "SecretAction",
    "SecretsConfig",
    "StoreConfig",
    "TelemetryConfig",
    "TypesConfig",
    "UpdatesConfig",
    "parse_setting",
    "locate",
    "locate_brain",
    "user_data_brain",
]

_T = TypeVar("_T")

_FOLDERS_OF_BRAIN = ("memory", "personalities", "sliders", "gauges", "persona")


def _ranged(default: _T, low: float, high: float) -> _T:
    value: _T = field(default=default, metadata={"range": (low, high)})
    return value


def _one_of(default: str, *choices: str) -> str:
    value: str = field(default=default, metadata={"choices": choices})
    return value


@dataclass(frozen=True)
class StoreConfig:
    """The local store. Sizes in bytes, waits in seconds."""

    namespace: str = "default"
    max_content_bytes: int = _ranged(1_048_576, 1, 1 << 30)
    lock_wait_seconds: float = _ranged(30.0, 0.0, 3600.0)
    durability: str = _one_of("full", "full", "normal")  # full: file and folder synced before acknowledging
    keep_versions: int = _ranged(20, 0, 1_000_000)  # former versions kept per chunk
    views_limit: int = _ranged(10_000, 0, 100_000_000)  # close() writes the JSON views up to this many chunks
    audit_reads: bool = False  # write an event line for every read too
    processes: int = _ranged(0, 0, 64)  # that read files when many are indexed; 0: one per core, 1: only this


@dataclass(frozen=True)
class PostgresConfig:
    """Connections to PostgreSQL, for a brain that is named by a DSN. Waits in seconds."""

    pool_size: int = _ranged(10, 1, 1000)  # connections of one process, at most
    connect_seconds: float = _ranged(
        10.0, 1.0, 600.0
    )  # for one attempt; connect_timeout of the DSN takes precedence
    reconnect_seconds: float = _ranged(30.0, 0.0, 3600.0)  # how long to wait for a server that went away
    prepared_statements: bool = True  # not through a pooler, which is detected when a connection is opened


@dataclass(frozen=True)
class IngestConfig:
    """From text to chunks; sizes in o200k tokens unless named otherwise."""

    target_tokens: int = _ranged(250, 1, 100_000)
    max_tokens: int = _ranged(500, 2, 100_000)
    min_tokens: int = _ranged(100, 1, 100_000)
    overlap_tokens: int = _ranged(40, 0, 10_000)
    max_content_bytes: int = _ranged(8_388_608, 1, 1 << 30)  # largest text that one remember takes
    min_shared_tags: int = _ranged(1, 1, 1000)
    max_links_per_type: int = _ranged(3, 0, 10_000)
    follows_seconds: float = _ranged(300.0, 0.0, 86_400.0)
    folders: tuple[
        str, ...
    ] = ()  # that a server may keep in step for its clients; not for the file of a brain
    max_similar: int = _ranged(
        3, 0, 1_000_000
    )  # a text that is stored so often is not stored again; 0: no limit


@dataclass(frozen=True)
class UpdatesConfig:
    """Which earlier memories a new one replaces or contradicts (docs/spec/links.md, Proposals)."""

    find: str = _one_of("apply", "apply", "review", "off")  # apply: where the text itself says so
    replace: tuple[
        str, ...
    ] = ()  # attributes ("phone number") of which a later value replaces an earlier one
    judge: int = _ranged(
        3, 0, 50
    )  # of the proposals of one text, that a configured model decides: one short call each
    max_open: int = _ranged(200, 0, 100_000)  # proposals that wait for a reviewer; more are not queued


@dataclass(frozen=True)
class SearchConfig:
    """Deterministic retrieval."""

    language: str = "english"
    candidates: int = _ranged(100, 1, 10_000)  # chunks that the first stage passes to the ranker


@dataclass(frozen=True)
class SandboxConfig:
    """Limits of one REPL session (docs/spec/sandbox.md, Limits)."""

    engine: str = _one_of("monty", "monty", "cpython")
    timeout_seconds: float = _ranged(60.0, 0.01, 86_400.0)
    memory_mb: int = _ranged(
        32, 8, 4096
    )  # of the sandbox; values passed to the host take up to twice as much there
    max_string_bytes: int = _ranged(10_485_760, 1024, 1 << 30)
    max_output_chars: int = _ranged(8_000, 100, 10_000_000)
    max_host_calls: int = _ranged(10_000, 1, 10_000_000)
    allow_weaker_isolation: bool = False  # run the cpython engine where seccomp is missing


@dataclass(frozen=True)
class RecallConfig:
    """Budgets and records of RECALL and REASON; 0 means no limit where the comment says so."""

    max_iterations: int = _ranged(10, 1, 1000)
    max_depth: int = _ranged(5, 0, 50)
    max_seconds: float = _ranged(60.0, 0.01, 86_400.0)
    max_model_calls: int = _ranged(50, 1, 1_000_000)
    max_tokens: int = _ranged(0, 0, 1_000_000_000)  # 0: no limit
    max_usd: float = _ranged(0.0, 0.0, 1_000_000.0)  # 0: no limit
    max_sub_calls: int = _ranged(0, 0, 1_000_000)  # of llm_query, beside the budget of the run; 0: no limit
    max_sub_tokens: int = _ranged(0, 0, 1_000_000_000)
    max_sub_usd: float = _ranged(0.0, 0.0, 1_000_000.0)
    trajectories: bool = True
    keep_trajectory_days: int = _ranged(90, 0, 36_500)  # 0: keep for good
    scaffold: str = _one_of(
        "auto", "auto", "always", "never"
    )  # who reads where a model cannot write programs
    first_hits: int = _ranged(8, 0, 100)  # chunks of which the model sees snippets before its first program


@dataclass(frozen=True)
class LLMConfig:
    """Which model writes the programs. Keys are never settings: environment or keyring only."""

    model: str = "offline"
    sub_model: str = ""  # answers llm_query in programs; empty: the model that writes them
    base_url: str = ""
    timeout_seconds: float = _ranged(60.0, 0.1, 3600.0)
    retries: int = _ranged(2, 0, 20)
    temperature: float = _ranged(0.0, -1.0, 2.0)  # below 0: not sent, the model's default applies
    max_tokens: int = _ranged(2048, 1, 1_000_000)  # of one answer, reasoning included
    context_tokens: int = _ranged(8192, 512, 10_000_000)


@dataclass(frozen=True)
class ContinuumConfig:
    """The Continuum Memory System; its rules are not configurable (docs/spec/continuum.md, Promotion)."""

    task_types: tuple[str, ...] = ()  # accepted besides research, development, creative and analysis


_LEVELS = ("quarantined", "untrusted", "ordinary", "trusted")


@dataclass(frozen=True)
class TrustConfig:
    """How far new chunks are trusted, by the way in which they come (docs/spec/chunk-format.md, Origin and trust)."""

    person: str = _one_of("trusted", *_LEVELS)
    agent: str = _one_of("ordinary", *_LEVELS)
    tool: str = _one_of("untrusted", *_LEVELS)
    imported: str = _one_of("untrusted", *_LEVELS)
    web: str = _one_of("untrusted", *_LEVELS)
    namespaces: dict[str, Any] = field(
        default_factory=dict
    )  # other levels for a namespace, by the same names
    expired: str = _one_of("archive", "archive", "erase")  # what consolidation does with what has expired

    def levels(self, namespace: str) -> dict[str, str]:
        """The level of new chunks in a namespace, by their origin."""
        found = {
            "person": self.person,
            "agent": self.agent,
            "tool": self.tool,
            "imported": self.imported,
            "web": self.web,
            **self.namespaces.get(namespace, {}),
        }
        return {"import": found.pop("imported"), **found}


def _check_trust_of_namespaces(config: TrustConfig, where: str) -> None:
    names = [one.name for one in fields(TrustConfig) if one.name not in ("namespaces", "expired")]
    for namespace, levels in config.namespaces.items():
        for name, level in levels.items() if isinstance(levels, Mapping) else [("", None)]:
            if name not in names or level not in _LEVELS:
                raise InvalidConfig(
                    f"{where}: trust.namespaces.{namespace!r:.60} must be a table of {', '.join(names)}, each one of"
                    f" {', '.join(_LEVELS)}"
                )


SecretAction = Literal["redact", "keep", "refuse"]
"""What happens to a secret: ``[redacted:RULE]`` replaces it, the text is kept, or the call is refused."""


@dataclass(frozen=True)
class SecretsConfig:
    """What happens to keys, passwords and other secrets in texts that are written and imported."""

    action: str = _one_of(
        "redact", "redact", "keep", "warn", "refuse", "off"
    )  # warn: the former name of keep
    pii: bool = False  # e-mail addresses and telephone numbers too


@dataclass(frozen=True)
class LogConfig:
    """What the command and its servers write to stderr; a program that uses the package configures logging itself."""

    level: str = _one_of("warning", "debug", "info", "warning", "error")
    format: str = _one_of("text", "text", "json")


@dataclass(frozen=True)
class TelemetryConfig:
    """Spans and metrics by OpenTelemetry (extra ``telemetry``); see docs/operations.md."""

    enabled: str = _one_of(
        "auto", "auto", "on", "off"
    )  # auto: where the standard OTEL_ variables name an exporter
    endpoint: str = ""  # of a collector, OTLP over HTTP; empty: that of the standard variables
    service_name: str = "rlm-mem"
    content: bool = False  # put questions and answers into spans


@dataclass(frozen=True)
class TypesConfig:
    """Custom chunk and link types (docs/spec/chunk-format.md, Types) that every process of this brain accepts."""

    chunk: dict[str, Any] = field(default_factory=dict)
    link: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """All settings, by section."""

    store: StoreConfig = field(default_factory=StoreConfig)
    postgres: PostgresConfig = field(default_factory=PostgresConfig)
    ingest: IngestConfig = field(default_factory=IngestConfig)
    updates: UpdatesConfig = field(default_factory=UpdatesConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    recall: RecallConfig = field(default_factory=RecallConfig)
    llm: LLMConfig = field(default_factory=LLMConfig)
    continuum: ContinuumConfig = field(default_factory=ContinuumConfig)
    secrets: SecretsConfig = field(default_factory=SecretsConfig)
    log: LogConfig = field(default_factory=LogConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    types: TypesConfig = field(default_factory=TypesConfig)
    trust: TrustConfig = field(default_factory=TrustConfig)

    @classmethod
    def load(
        cls,
        brain: Path | str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        **overrides: Mapping[str, Any],
    ) -> Config:
        """Read the settings of a brain folder.

        Args:
            brain: folder that may hold ``config.toml``; None, or the DSN of a database, reads no file.
            environ: environment to read ``RLM_MEM_STORE_NAMESPACE`` and the like from; None means ``os.environ``.
            **overrides: sections as mappings, for example ``recall={"max_iterations": 3}``.

        Raises:
            InvalidConfig: unknown section or setting, wrong type, value out of range, unreadable file.
        """
        config = cls()
        folder = checked_place(brain) if brain is not None else None
        if isinstance(folder, Path):
            path = folder / "config.toml"
            config = cls.of_file(_read(path), str(path))
        config = _apply(config, _from_environ(os.environ if environ is None else environ), "environment")
        return _apply(config, overrides, "arguments")

    @classmethod
    def of_file(cls, text: str, where: str) -> Config:
        """The settings that a ``config.toml`` of a brain makes, alone.

        Args:
            text: of the file.
            where: its name for messages.

        Raises:
            InvalidConfig: not TOML, an unknown setting, a wrong type or value, or a value that a brain may not set.
        """
        try:
            layer = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidConfig(f"{where} is not valid TOML: {error}") from None
        _refuse_external_access(layer, where)
        return _apply(cls(), layer, where)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Every setting as ``{section: {name: value}}``."""
        return {
            section.name: {
                item.name: getattr(getattr(self, section.name), item.name)
                for item in fields(getattr(self, section.name))
            }
            for section in fields(self)
        }


def parse_setting(setting: str, text: str) -> Any:
    """The value that a text means for a setting, of its type; the range is not checked.

    Args:
        setting: ``section.name``.
        text: as in the environment: ``true``, ``6``, ``a, b``.

    Raises:
        InvalidConfig: there is no such setting, it has no single value, or the text is of another type.
    """
    section, _, name = setting.partition(".")
    sections = {one.name for one in fields(Config)}
    if section not in sections:
        raise InvalidConfig(f"there is no setting {setting!r:.60}", hint="rlm-mem config list names them")
    hint = get_type_hints(_section_class(section)).get(name)
    if hint is None or section == "types":
        known = [one.name for one in fields(_section_class(section))] if section != "types" else []
        raise InvalidConfig(
            f"there is no setting {setting!r:.60} of one value",
            hint=f"use one of {', '.join(f'{section}.{one}' for one in known)}"
            if known
            else "types are tables of config.toml (docs/spec/chunk-format.md)",
        )
    return _from_text(text, hint, setting)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}") from None


def _refuse_external_access(layer: Mapping[str, Any], where: str) -> None:
    """A brain is cloned and shared: its file may choose a model, but neither run a command nor name a server that
    memories and keys would be sent to. Only the environment or the caller may do so.
    """
    _refuse_higher_limits(layer, where)
    ingest = layer.get("ingest")
    if isinstance(ingest, Mapping) and ingest.get("folders"):
        raise InvalidConfig(
            f"{where}: ingest.folders lets clients of a server read folders, which the file of a brain may not allow",
            hint="set RLM_MEM_INGEST_FOLDERS in your own environment instead",
        )
    telemetry = layer.get("telemetry")
    if isinstance(telemetry, Mapping):
        if telemetry.get("content"):
            raise InvalidConfig(
                f"{where}: telemetry.content would put memories into spans, which the file of a brain may not ask for",
                hint="set RLM_MEM_TELEMETRY_CONTENT=true in your own environment instead",
            )
        if telemetry.get("endpoint") and not _is_loopback(str(telemetry["endpoint"])):
            raise InvalidConfig(
                f"{where}: telemetry.endpoint={telemetry['endpoint']!r:.80} is another machine, which the file of a "
                "brain may not ask for",
                hint="set OTEL_EXPORTER_OTLP_ENDPOINT in your own environment instead",
            )
    settings = layer.get("llm")
    if not isinstance(settings, Mapping):
        return
    model, base_url = str(settings.get("model", "")), str(settings.get("base_url", ""))
    kind, _, rest = model.partition(":")
    urls = [base_url, "http" + model.partition("@http")[2]] if "@http" in model else [base_url]
    elsewhere = [url for url in urls if url and not _is_loopback(url)]
    if kind.strip().lower() == "cli" and rest.strip() not in ("claude", "codex"):
        refused = f"llm.model={model!r:.80} would run a command"
    elif elsewhere:
        refused = f"llm would send memories to {elsewhere[0]!r:.80}"
    else:
        return
    raise InvalidConfig(
        f"{where}: {refused}, which the file of a brain may not ask for",
        hint="set RLM_MEM_LLM_MODEL and RLM_MEM_LLM_BASE_URL in your own environment instead",
    )


_BRAIN_FILE_LIMITS: dict[str, dict[str, float]] = {
    "sandbox": {
        "timeout_seconds": 300.0,
        "memory_mb": 128,
        "max_string_bytes": 16_777_216,
        "max_output_chars": 100_000,
        "max_host_calls": 50_000,
        "allow_weaker_isolation": False,
    },
    "recall": {"max_iterations": 100, "max_depth": 10, "max_seconds": 600.0, "max_model_calls": 500},
}
"""Upper limits of settings in the file of a brain; the environment and the caller may go beyond them."""


def _refuse_higher_limits(layer: Mapping[str, Any], where: str) -> None:
    for section, limits in _BRAIN_FILE_LIMITS.items():
        values = layer.get(section)
        if not isinstance(values, Mapping):
            continue
        for name, most in limits.items():
            value = values.get(name)
            if (
                not isinstance(value, int | float)
                or (isinstance(value, bool) and most is not False)
                or value <= most
            ):
                # Within the limit, or of a wrong type, which is reported later.
                continue
            shown = "true" if value is True else f"{value:g}"
            at_most = "" if most is False else f" (at most {most:g})"
            raise InvalidConfig(
                f"{where}: {section}.{name} = {shown} is more than the file of a brain may ask for{at_most}",
                hint=f"set RLM_MEM_{section.upper()}_{name.upper()}={shown} in your own environment instead",
            )


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def _from_environ(environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """``RLM_MEM_RECALL_MAX_ITERATIONS=3`` sets ``recall.max_iterations``; other RLM_MEM_ names are not settings."""
    found: dict[str, dict[str, Any]] = {}
    for section in fields(Config):
        if section.name == "types":
            continue
        prefix = f"RLM_MEM_{section.name.upper()}_"
        hints = get_type_hints(_section_class(section.name))
        for name, hint in hints.items():
            text = environ.get(prefix + name.upper())
            if text is not None:
                found.setdefault(section.name, {})[name] = _from_text(text, hint, prefix + name.upper())
    return found


_KINDS = {bool: "true or false", int: "a whole number", float: "a number"}


def _from_text(text: str, hint: Any, where: str) -> Any:
    try:
        if hint is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
                text.lower()
            ]
        if hint in (int, float):
            return hint(text)
        if get_origin(hint) in (tuple, list):
            return [part.strip() for part in text.split(",") if part.strip()]
    except (KeyError, ValueError):
        raise InvalidConfig(f"{where}={text!r:.60} is not {_KINDS[hint]}") from None
    return text


def _section_class(name: str) -> type[Any]:
    return type(getattr(Config(), name))


def _apply(config: Config, layer: Mapping[str, Any], where: str) -> Config:
    sections = {section.name for section in fields(Config)}
    changed: dict[str, Any] = {}
    for section, values in layer.items():
        if section not in sections:
            raise InvalidConfig(
                f"{where}: unknown section [{section}]: use one of {', '.join(sorted(sections))}"
            )
        if not isinstance(values, Mapping):
            raise InvalidConfig(f"{where}: [{section}] must be a table of settings")
        current = changed.get(section, getattr(config, section))
        known = {item.name: item for item in fields(current)}
        hints = get_type_hints(type(current))
        for name, value in values.items():
            if name not in known:
                raise InvalidConfig(
                    f"{where}: unknown setting {section}.{name}: use one of {', '.join(sorted(known))}"
                )
            checked = _check(value, hints[name], known[name].metadata, f"{where}: {section}.{name}")
            current = replace(current, **{name: checked})
        if isinstance(current, TrustConfig):
            _check_trust_of_namespaces(current, where)
        changed[section] = current
    return replace(config, **changed)


def _check(value: Any, hint: Any, metadata: Mapping[str, Any], where: str) -> Any:
    kind = get_origin(hint) or hint
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    if kind is bool:
        fits = isinstance(value, bool)
    elif kind in (int, float):
        fits = isinstance(value, kind) and not isinstance(value, bool)
    elif kind in (str, dict, tuple):
        fits = isinstance(value, kind)
    else:
        fits = any(isinstance(value, option) for option in get_args(hint))
    if not fits:
        raise InvalidConfig(f"{where} must be of type {getattr(kind, '__name__', kind)}, not {value!r:.60}")
    if "range" in metadata:
        low, high = metadata["range"]
        if not low <= value <= high:
            raise InvalidConfig(f"{where} must be from {low:g} to {high:g}, not {value!r:.60}")
    if "choices" in metadata and value not in metadata["choices"]:
        raise InvalidConfig(f"{where} must be one of {', '.join(metadata['choices'])}, not {value!r:.60}")
    return value


def user_data_brain(environ: Mapping[str, str] | None = None) -> Path:
    """The brain folder of the user's data folder (XDG on Linux, the platform's own place elsewhere)."""
    env = os.environ if environ is None else environ
    if os.name == "nt" and env.get("LOCALAPPDATA"):
        return Path(env["LOCALAPPDATA"]) / "rlm-mem" / "brain"
    if env.get("XDG_DATA_HOME"):
        return Path(env["XDG_DATA_HOME"]) / "rlm-mem" / "brain"
    return Path(env.get("HOME") or Path.home()) / ".local" / "share" / "rlm-mem" / "brain"


def locate_brain(
    path: Path | str | None = None,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Path:
    """The brain that a command uses: the argument, ``RLM_MEM_BRAIN``, the nearest ``brain/`` with a store upwards
    from the working folder, else the brain of the user's data folder.

    Raises:
        InvalidConfig: a database is named (see ``locate``).
    """
    place = locate(path, cwd=cwd, environ=environ)
    if isinstance(place, str):
        raise InvalidConfig(
            f"{shown_dsn(place)} is a database: this needs the folder of a brain",
            hint="name one with --brain PATH or RLM_MEM_BRAIN",
        )
    return place


def _is_brain(folder: Path) -> bool:
    """Whether a folder named ``brain`` belongs to this program, judged by its content."""
    return (folder / "config.toml").is_file() or any((folder / name).is_dir() for name in _FOLDERS_OF_BRAIN)


def locate(
    path: Path | str | None = None,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Path | str:
    """As ``locate_brain``, but a database may be named too: a DSN (``postgresql://…``) is returned as it is.

    Raises:
        InvalidConfig: the address is of another kind, such as ``mysql://…``.
    """
    env = os.environ if environ is None else environ
    named = path if path is not None else env.get("RLM_MEM_BRAIN") or None
    if named is not None:
        return checked_place(named)
    start = cwd or Path.cwd()
    for folder in (start, *start.parents):
        candidate = folder / "brain"
        if _is_brain(candidate):
            return candidate
    return user_data_brain(env)

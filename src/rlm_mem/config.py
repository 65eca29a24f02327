"""Settings, in order of precedence: defaults < ``brain/config.toml`` < environment (``RLM_MEM_…``) < arguments.

Each section is a frozen record of plain fields. The range of a field is part of its annotation and is checked for every
source of the value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from msgspec import Struct, field, structs

from rlm_mem.chunk.types import TRUST_LEVELS, TrustLevel, is_one_of
from rlm_mem.dsn import checked_place, is_loopback_url
from rlm_mem.errors import InvalidConfig
from rlm_mem.merging import MERGE_CONFLICT, in_conflict
from rlm_mem.record import FrozenRecord

_FOLDERS_OF_BRAIN = ("memory", "personalities", "sliders", "gauges", "persona")
MAX_NEAREST = 10  # earlier memories that a model compares with one


EngineName = Literal["monty", "cpython"]
"""Names of the engines that run programs."""


class _Range(FrozenRecord, frozen=True):
    """The minimum and maximum of a setting.

    Attributes:
        in_file: the maximum in the file of a brain, which may be somebody else's; the environment and the caller may
            exceed it.
    """

    low: float
    high: float
    in_file: float | None = None


class StoreConfig(FrozenRecord, frozen=True):
    """The local store. Sizes in bytes, waits in seconds."""

    namespace: str = "default"  # the namespace used if none is given
    max_content_bytes: Annotated[int, _Range(1, 1 << 25)] = 1_048_576  # largest content of one chunk
    lock_wait_seconds: Annotated[float, _Range(0.0, 3600.0)] = 30.0  # how long a writer waits for another
    # full: sync file and folder before a write is acknowledged
    durability: Literal["full", "normal"] = "full"
    keep_versions: Annotated[int, _Range(0, 1_000_000)] = 20  # former versions kept per chunk
    # number of chunks up to which close() writes the JSON views
    views_limit: Annotated[int, _Range(0, 100_000_000)] = 1_000
    audit_reads: bool = False  # also log every read in the audit log
    # processes that index, check or import many files; 0: one per core, 1: only this one
    processes: Annotated[int, _Range(0, 64)] = 0


class PostgresConfig(FrozenRecord, frozen=True):
    """Connections to PostgreSQL, for a brain that is named by a DSN. Waits in seconds."""

    pool_size: Annotated[int, _Range(1, 1000)] = 10  # maximum of connections per process
    # time for one attempt; connect_timeout of the DSN takes precedence
    connect_seconds: Annotated[float, _Range(1.0, 600.0)] = 10.0
    # how long to wait for an unavailable server
    reconnect_seconds: Annotated[float, _Range(0.0, 3600.0)] = 30.0
    prepared_statements: bool = True  # never used through a pooler, which is detected when connecting


class IngestConfig(FrozenRecord, frozen=True):
    """How text becomes chunks; sizes in o200k tokens unless stated otherwise."""

    target_tokens: Annotated[int, _Range(1, 100_000)] = 250  # size that chunks aim at
    max_tokens: Annotated[int, _Range(2, 100_000)] = 500  # largest chunk
    min_tokens: Annotated[int, _Range(1, 100_000)] = 100  # smallest chunk, if the text has more
    # sentences repeated at the start of the next chunk
    overlap_tokens: Annotated[int, _Range(0, 10_000)] = 40
    max_content_bytes: Annotated[int, _Range(1, 1 << 30)] = 8_388_608  # largest text that remember accepts
    min_shared_tags: Annotated[int, _Range(1, 1000)] = 1  # common tags needed for a link related_to
    max_links_per_type: Annotated[int, _Range(0, 10_000)] = 3  # automatic links of each type; 0: none
    # largest time between linked chunks (follows)
    follows_seconds: Annotated[float, _Range(0.0, 86_400.0)] = 300.0
    # folders that a server may sync for its clients; refused in the file of a brain
    folders: tuple[str, ...] = ()
    # nearly equal chunks, after which such a text is not stored again; 0: no limit
    max_similar: Annotated[int, _Range(0, 1_000_000)] = 3


class UpdatesConfig(FrozenRecord, frozen=True):
    """Which earlier memories a new one replaces or contradicts (docs/spec/links.md, Proposals)."""

    # apply changes that the text itself states, queue them for review, or do not look
    find: Literal["apply", "review", "off"] = "apply"
    # attributes, such as "phone number", whose later value replaces the earlier one
    replace: tuple[str, ...] = ()
    # maximum of proposals per text that a configured model decides, with one short call each
    judge: Annotated[int, _Range(0, 50)] = 3
    # maximum of the nearest earlier memories that a configured model compares with each text, one call each
    nearest: Annotated[int, _Range(0, MAX_NEAREST)] = 0
    # maximum of proposals waiting for a reviewer; more are not queued
    max_open: Annotated[int, _Range(0, 100_000)] = 200


class SearchConfig(FrozenRecord, frozen=True):
    """Deterministic retrieval."""

    language: str = "english"  # language of stemming, by its English name, such as german
    candidates: Annotated[int, _Range(1, 10_000)] = 100  # candidates that the ranker scores


class SandboxConfig(FrozenRecord, frozen=True):
    """Limits of one REPL session (docs/spec/sandbox.md, Limits)."""

    engine: EngineName = "monty"  # what runs programs
    # of one program, wall clock
    timeout_seconds: Annotated[float, _Range(0.01, 86_400.0, in_file=300.0)] = 60.0
    # of one program that a caller writes (recall_exec), which waits for it; at most timeout_seconds
    caller_timeout_seconds: Annotated[float, _Range(0.01, 86_400.0, in_file=300.0)] = 20.0
    # memory of the sandbox; values passed to the host take up to twice as much there
    memory_mb: Annotated[int, _Range(8, 4096, in_file=128)] = 32
    # longest text of one value
    max_string_bytes: Annotated[int, _Range(1024, 1 << 30, in_file=16_777_216)] = 10_485_760
    # output returned to the model at a time
    max_output_chars: Annotated[int, _Range(100, 10_000_000, in_file=100_000)] = 8_000
    # calls of functions by one program
    max_host_calls: Annotated[int, _Range(1, 10_000_000, in_file=50_000)] = 10_000
    # let the cpython engine run without seccomp
    allow_weaker_isolation: Annotated[bool, _Range(False, True, in_file=False)] = False


class RecallConfig(FrozenRecord, frozen=True):
    """Budgets and records of RECALL and REASON."""

    max_iterations: Annotated[int, _Range(1, 1000, in_file=100)] = 10  # turns of the model
    max_depth: Annotated[int, _Range(0, 50, in_file=10)] = 5  # levels of sub-questions
    max_seconds: Annotated[float, _Range(0.01, 86_400.0, in_file=600.0)] = 60.0  # wall clock
    max_model_calls: Annotated[int, _Range(1, 1_000_000, in_file=500)] = 50  # calls of models
    max_tokens: Annotated[int, _Range(0, 1_000_000_000)] = 0  # tokens of models; 0: no limit
    max_usd: Annotated[float, _Range(0.0, 1_000_000.0)] = 0.0  # dollars; 0: no limit
    # calls of llm_query, separate from the budget of the run; 0: no limit
    max_sub_calls: Annotated[int, _Range(0, 1_000_000)] = 0
    max_sub_tokens: Annotated[int, _Range(0, 1_000_000_000)] = 0  # tokens of llm_query; 0: no limit
    max_sub_usd: Annotated[float, _Range(0.0, 1_000_000.0)] = 0.0  # dollars of llm_query; 0: no limit
    trajectories: bool = True  # record runs
    keep_trajectory_days: Annotated[int, _Range(0, 36_500)] = 90  # how long runs are kept; 0: permanently
    # let the offline model search and the model only read; auto: if the model cannot write programs
    scaffold: Literal["auto", "always", "never"] = "auto"
    # chunks whose snippets the model sees before its first program
    first_hits: Annotated[int, _Range(0, 100)] = 8


class LLMConfig(FrozenRecord, frozen=True):
    """Which model writes the programs. Keys are never settings: environment or keyring only."""

    model: str = "offline"  # name of a model, as in docs/models.md
    sub_model: str = ""  # answers llm_query in programs; empty: the model that writes them
    base_url: str = ""  # address of the model server
    timeout_seconds: Annotated[float, _Range(0.1, 3600.0)] = 60.0  # of one call, with its retries
    retries: Annotated[int, _Range(0, 20)] = 2  # further attempts after a transient failure
    temperature: Annotated[float, _Range(-1.0, 2.0)] = 0.0  # below 0: not sent, the model's default applies
    max_tokens: Annotated[int, _Range(1, 1_000_000)] = 2048  # maximum length of one reply, reasoning included
    context_tokens: Annotated[int, _Range(512, 10_000_000)] = 8192  # context window of the model


class ContinuumConfig(FrozenRecord, frozen=True):
    """The Continuum Memory System; its rules are not configurable (docs/spec/continuum.md, Promotion)."""

    # task types accepted besides research, development, creative and analysis
    task_types: tuple[str, ...] = ()


class TrustConfig(FrozenRecord, frozen=True):
    """How far new chunks are trusted, by their origin (docs/spec/chunk-format.md, Origin and trust)."""

    person: TrustLevel = "trusted"  # written by a person
    agent: TrustLevel = "ordinary"  # written by an agent
    tool: TrustLevel = "untrusted"  # output of a tool
    imported: TrustLevel = "untrusted"  # from an imported file
    web: TrustLevel = "untrusted"  # from a web page
    # when agents and clients forget or replace what a person wrote or confirmed: apply it at once, or ask that person
    by_agents: Literal["apply", "ask"] = "apply"
    namespaces: dict[str, Any] = field(default_factory=dict)  # other levels for single namespaces
    expired: Literal["archive", "erase"] = "archive"  # what consolidation does to expired chunks

    def levels(self, namespace: str) -> dict[str, str]:
        """Trust levels of new chunks in a namespace, by origin."""
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
    names = [
        one for one in TrustConfig.__struct_fields__ if one not in ("namespaces", "expired", "by_agents")
    ]
    for namespace, levels in config.namespaces.items():
        for name, level in levels.items() if isinstance(levels, Mapping) else [("", None)]:
            if name not in names or level not in TRUST_LEVELS:
                raise InvalidConfig(
                    f"{where}: trust.namespaces.{namespace!r:.60} must be a table of {', '.join(names)}, each one of"
                    f" {', '.join(TRUST_LEVELS)}"
                )


SecretAction = Literal["redact", "keep", "refuse"]
"""How to handle secrets: replace them by ``[redacted:RULE]``, keep the text, or refuse the call."""


class SecretsConfig(FrozenRecord, frozen=True):
    """What happens to keys, passwords and other secrets in texts that are written and imported."""

    # what to do with a secret; warn is the former name of keep
    action: Literal["redact", "keep", "warn", "refuse", "off"] = "redact"
    pii: bool = False  # treat e-mail addresses and telephone numbers as secrets


class LogConfig(FrozenRecord, frozen=True):
    """What the command and its servers write to stderr; a program that uses the package configures logging itself."""

    level: Literal["debug", "info", "warning", "error"] = "warning"  # lowest level shown
    format: Literal["text", "json"] = "text"  # json: one object per line


class TelemetryConfig(FrozenRecord, frozen=True):
    """Spans and metrics by OpenTelemetry (extra ``telemetry``); see docs/operations.md."""

    enabled: Literal["auto", "on", "off"] = "auto"  # auto: if the standard OTEL_ variables name an exporter
    endpoint: str = ""  # address of a collector (OTLP over HTTP); empty: as in the standard variables
    service_name: str = "rlm-mem"  # name of the service in spans and metrics
    content: bool = False  # add questions and answers to spans


class TypesConfig(FrozenRecord, frozen=True):
    """Custom chunk and link types (docs/spec/chunk-format.md, Types) that every process of this brain accepts."""

    chunk: dict[str, Any] = field(default_factory=dict)  # custom chunk types
    link: dict[str, Any] = field(default_factory=dict)  # custom link types


class Config(FrozenRecord, frozen=True):
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
        """Load the settings of a brain folder.

        Args:
            brain: folder that may contain ``config.toml``; None, or the DSN of a database, reads no file.
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
        """Parse the ``config.toml`` of a brain, without environment or arguments.

        Args:
            text: content of the file.
            where: name of the file for error messages.

        Raises:
            InvalidConfig: not TOML, an unknown setting, a wrong type or value, or a value that a brain may not set.
        """
        if not text:
            return cls()
        import tomllib  # imported late: takes 5 ms, and most brains have no such file

        try:
            layer = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            wrong = f": {MERGE_CONFLICT}" if in_conflict(text) else f" is not valid TOML: {error}"
            raise InvalidConfig(where + wrong) from None
        _refuse_external_access(layer, where)
        return _apply(cls(), layer, where)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Every setting as ``{section: {name: value}}``."""
        return {section: structs.asdict(getattr(self, section)) for section in self.__struct_fields__}


def parse_setting(setting: str, text: str) -> Any:
    """Convert a text to the type of a setting, without checking its range.

    Args:
        setting: ``section.name``.
        text: the value as written in the environment: ``true``, ``6``, ``a, b``.

    Raises:
        InvalidConfig: the setting is unknown or has no single value, or the text does not match its type.
    """
    section, _, name = setting.partition(".")
    sections = Config.__struct_fields__
    if section not in sections:
        raise InvalidConfig(f"there is no setting {setting!r:.60}", hint="rlm-mem config list lists them")
    hint = get_type_hints(_section_class(section)).get(name)
    if hint is None or section == "types":
        known = _section_class(section).__struct_fields__ if section != "types" else []
        raise InvalidConfig(
            f"there is no setting {setting!r:.60} with a single value",
            hint=f"use one of {', '.join(f'{section}.{one}' for one in known)}"
            if known
            else "types are tables of config.toml (docs/spec/chunk-format.md)",
        )
    return _from_text(text, hint, setting)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError as error:
        raise InvalidConfig(
            f"{path} is not valid TOML: byte {error.start} is not UTF-8", hint="save the file as UTF-8"
        ) from None
    except OSError as error:
        hint = "check the permissions of the folder" if isinstance(error, PermissionError) else None
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}", hint=hint) from None


def _refuse_external_access(layer: Mapping[str, Any], where: str) -> None:
    """Refuse settings with which a brain's file could run a command or redirect memories and keys to a server.

    Brains are cloned and shared, so only the environment or the caller may set these; the file may choose a model.
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
                f"{where}: telemetry.content would put memories into spans, which the file of a brain may not do",
                hint="set RLM_MEM_TELEMETRY_CONTENT=true in your own environment instead",
            )
        if telemetry.get("endpoint") and not is_loopback_url(str(telemetry["endpoint"])):
            raise InvalidConfig(
                f"{where}: telemetry.endpoint={telemetry['endpoint']!r:.80} is on another machine, which the file of "
                "a brain may not name",
                hint="set OTEL_EXPORTER_OTLP_ENDPOINT in your own environment instead",
            )
    settings = layer.get("llm")
    if not isinstance(settings, Mapping):
        return
    model, base_url = str(settings.get("model", "")), str(settings.get("base_url", ""))
    kind, _, rest = model.partition(":")
    urls = [base_url, "http" + model.partition("@http")[2]] if "@http" in model else [base_url]
    elsewhere = [url for url in urls if url and not is_loopback_url(url)]
    if kind.strip().lower() == "cli" and rest.strip() not in ("claude", "codex"):
        refused = f"llm.model={model!r:.80} would run a command"
    elif elsewhere:
        refused = f"llm would send memories to {elsewhere[0]!r:.80}"
    else:
        return
    raise InvalidConfig(
        f"{where}: {refused}, which the file of a brain may not set",
        hint="set RLM_MEM_LLM_MODEL and RLM_MEM_LLM_BASE_URL in your own environment instead",
    )


def _refuse_higher_limits(layer: Mapping[str, Any], where: str) -> None:
    for section, values in layer.items():
        if section not in Config.__struct_fields__ or not isinstance(values, Mapping):
            continue  # reported later
        hints = get_type_hints(_section_class(section), include_extras=True)
        for name, value in values.items():
            for bound in getattr(hints.get(name), "__metadata__", ()):
                if bound.in_file is not None and isinstance(value, int | float) and value > bound.in_file:
                    _refuse_in_file(section, name, value, bound.in_file, where)


def _refuse_in_file(section: str, name: str, value: float, most: float, where: str) -> NoReturn:
    shown = "true" if value is True else f"{value:g}"
    at_most = "" if most is False else f" (at most {most:g})"
    raise InvalidConfig(
        f"{where}: {section}.{name} = {shown} is more than the file of a brain may set{at_most}",
        hint=f"set RLM_MEM_{section.upper()}_{name.upper()}={shown} in your own environment instead",
    )


def _from_environ(environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Parse settings from the environment: ``RLM_MEM_RECALL_MAX_ITERATIONS=3`` sets ``recall.max_iterations``."""
    found: dict[str, dict[str, Any]] = {}
    variables = [variable for variable in environ if variable.startswith("RLM_MEM_")]
    for section in Config.__struct_fields__:
        prefix = f"RLM_MEM_{section.upper()}_"
        if section == "types" or not any(variable.startswith(prefix) for variable in variables):
            continue
        for name, hint in get_type_hints(_section_class(section)).items():
            text = environ.get(prefix + name.upper())
            if text is not None:
                found.setdefault(section, {})[name] = _from_text(text, hint, prefix + name.upper())
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


def _section_class(name: str) -> type[Struct]:
    return type(getattr(Config(), name))


def _apply(config: Config, layer: Mapping[str, Any], where: str) -> Config:
    sections = Config.__struct_fields__
    changed: dict[str, Any] = {}
    for section, values in layer.items():
        if section not in sections:
            raise InvalidConfig(
                f"{where}: unknown section [{section}]: use one of {', '.join(sorted(sections))}"
            )
        if not isinstance(values, Mapping):
            raise InvalidConfig(f"{where}: [{section}] must be a table of settings")
        current = changed.get(section, getattr(config, section))
        hints = get_type_hints(type(current), include_extras=True)
        for name, value in values.items():
            if name not in hints:
                raise InvalidConfig(
                    f"{where}: unknown setting {section}.{name}: use one of {', '.join(sorted(hints))}"
                )
            checked = _check(value, hints[name], f"{where}: {section}.{name}")
            current = structs.replace(current, **{name: checked})
        if isinstance(current, TrustConfig):
            _check_trust_of_namespaces(current, where)
        changed[section] = current
    return structs.replace(config, **changed)


def _check(value: Any, hint: Any, where: str) -> Any:
    bounds: list[Any] = []
    if get_origin(hint) is Annotated:
        hint, *bounds = get_args(hint)
    if get_origin(hint) is Literal:
        if not is_one_of(value, get_args(hint)):
            raise InvalidConfig(f"{where} must be one of {', '.join(get_args(hint))}, not {value!r:.60}")
        return value
    kind = get_origin(hint) or hint
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InvalidConfig(f"{where} must be of type {getattr(kind, '__name__', kind)}, not {value!r:.60}")
    for bound in bounds:
        if isinstance(bound, _Range) and not bound.low <= value <= bound.high:
            raise InvalidConfig(f"{where} must be from {bound.low:g} to {bound.high:g}, not {value!r:.60}")
    return value


def user_data_brain(environ: Mapping[str, str] | None = None) -> Path:
    """The default brain folder of the user (XDG on Linux, the platform's data folder elsewhere)."""
    env = os.environ if environ is None else environ
    if os.name == "nt" and env.get("LOCALAPPDATA"):
        return Path(env["LOCALAPPDATA"]) / "rlm-mem" / "brain"
    if env.get("XDG_DATA_HOME"):
        return Path(env["XDG_DATA_HOME"]) / "rlm-mem" / "brain"
    return Path(env.get("HOME") or home_folder()) / ".local" / "share" / "rlm-mem" / "brain"


def home_folder() -> Path:
    """The home folder of the user; raises InvalidConfig without one, as of a container's user that no list names."""
    try:
        return Path.home()
    except RuntimeError:
        raise InvalidConfig(
            "this user has no home folder", hint="set HOME, or RLM_MEM_BRAIN for the memory alone"
        ) from None


def stored_path(path: str) -> str:
    """Return an absolute path as a memory records it: below the home folder of the user, without the name of that.

    ``/home/ada/notes`` is ``~5f2c9e1a/notes``: a memory may be shared, and other people have a ``notes``, too.
    """
    try:
        home = str(Path.home())
    except RuntimeError:
        return path
    below = path == home or path.startswith(f"{home.rstrip(os.sep)}{os.sep}")
    return _home_mark(home) + path[len(home.rstrip(os.sep)) :] if below and len(home) > 1 else path


def path_of_stored(stored: str) -> str | None:
    """Return the path that ``stored_path`` recorded; None for a relative one, or one below another home folder."""
    if os.path.isabs(stored):  # noqa: PTH117 - a name, not a path of this system
        return stored
    with suppress(RuntimeError):
        home = str(Path.home())
        mark = _home_mark(home)
        if stored == mark or stored.startswith(mark + os.sep):
            return home.rstrip(os.sep) + stored[len(mark) :]
    return None


def _home_mark(home: str) -> str:
    from hashlib import blake2b  # OpenSSL: opening does not need it

    return f"~{blake2b(home.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"


def working_folder() -> Path:
    """The working folder; raises InvalidConfig if it was removed meanwhile."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InvalidConfig("the working folder was removed", hint="change to another folder") from None


def _is_brain(folder: Path) -> bool:
    """Whether a folder named ``brain`` was created by this program, judged by its content."""
    return (folder / "config.toml").is_file() or any((folder / name).is_dir() for name in _FOLDERS_OF_BRAIN)


def locate(
    path: Path | str | None = None, *, cwd: Path | None = None, environ: Mapping[str, str] | None = None
) -> Path | str:
    """The brain that a command uses.

    It is the argument, ``RLM_MEM_BRAIN``, the nearest of the working folder and those above it that has a ``brain/``
    with a store or is a brain itself, else the brain of the user's data folder. A DSN (``postgresql://…``) is returned
    unchanged.

    Raises:
        InvalidConfig: the address is of another kind, such as ``mysql://…``.
    """
    env = os.environ if environ is None else environ
    named = path if path is not None else env.get("RLM_MEM_BRAIN") or None
    if named is not None:
        return checked_place(named)
    here = cwd or working_folder()
    for folder in (here, *here.parents):
        if _is_brain(folder / "brain"):
            return folder / "brain"
        if (folder / "memory" / "chunks").is_dir():  # a brain of any name
            return folder
    return user_data_brain(env)


def nearest_brain(path: Path, start: Path, top: Path | None = None) -> Path | None:
    """The nearest brain at a relative path of ``start`` or a folder above it, up to ``top``; None if there is none."""
    for folder in (start, *start.parents):
        if _is_brain(folder / path):
            return folder / path
        if folder == top:
            break
    return None

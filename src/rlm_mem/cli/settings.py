"""`rlm-mem config`: the settings in force, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlm_mem.cli import options
from rlm_mem.cli.open import brain_place, shown_place
from rlm_mem.cli.terminal import print_json, screen, table, text

if TYPE_CHECKING:
    from pathlib import Path

    from rlm_mem.config import Config


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    group = typer.Typer(help="The settings.", no_args_is_help=True)
    group.command("show")(show)
    app.add_typer(group, name="config", rich_help_panel="Care")


def show(
    ctx: typer.Context,
    section: Annotated[
        str | None,
        typer.Argument(
            metavar="[SECTION]", help="Only this section, for example recall.", show_default=False
        ),
    ] = None,
    as_json: options.Json = False,
    brain: options.Brain = None,
) -> None:
    """Show the settings in force: defaults, then config.toml, then the environment."""
    from rlm_mem.config import Config
    from rlm_mem.errors import InvalidConfig

    place = brain_place(ctx, brain)
    config = Config.load(place)
    settings = config.to_dict()
    if section is not None:
        if section not in settings:
            raise InvalidConfig(f"there is no section {section!r}", hint=f"Use one of {', '.join(settings)}.")
        settings = {section: settings[section]}
    if as_json:
        print_json({"brain": shown_place(place), "settings": settings})
        return
    origins = _origins(config, place)
    made = table(
        ("setting", {"style": "cyan"}),
        ("value", {"no_wrap": False, "overflow": "fold"}),
        ("from", {"style": "dim"}),
    )
    for name, values in settings.items():
        for key, value in values.items():
            made.add_row(f"{name}.{key}", text(str(value)), origins.get((name, key), "default"))
    console = screen()
    console.print(text(f"brain: {shown_place(place)}", "dim"))
    console.print(made)


def _origins(config: Config, place: Path | str) -> dict[tuple[str, str], str]:
    """Where each setting that is not the default comes from."""
    from rlm_mem.config import Config as Settings

    plain: dict[str, dict[str, Any]] = Settings().to_dict()
    in_file = Settings.load(place, environ={}).to_dict()
    found: dict[tuple[str, str], str] = {}
    for section, values in config.to_dict().items():
        for key, value in values.items():
            if value != in_file[section][key]:
                found[section, key] = "environment"
            elif value != plain[section][key]:
                found[section, key] = "config.toml"
    return found


def settings_file() -> str:
    """The text of a ``config.toml`` that names every setting with its default and changes none."""
    from rlm_mem.config import Config

    lines = [
        "# Settings of this memory: take the # away from a line to change it.",
        "# rlm-mem config show lists what is in force.",
    ]
    for section, values in Config().to_dict().items():
        lines += ["", f"[{section}]"]
        lines += [
            f"# {name} = {_toml(value)}" for name, value in values.items() if not isinstance(value, dict)
        ]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    import json

    # JSON writes strings, numbers, booleans and lists of them as TOML does.
    return json.dumps(list(value) if isinstance(value, tuple) else value)

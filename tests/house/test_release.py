"""What a release says of itself: one version, a changelog by version, licences of what is shipped, the registry."""

from __future__ import annotations

import json
import re
import tomllib

from packaging.requirements import Requirement

from rlm_mem import __version__
from tests.house.sources import PAGES, ROOT, SOURCE, listed, named, text

PROJECT = tomllib.loads(text(ROOT / "pyproject.toml"))
REGISTRY = json.loads(text(ROOT / "server.json"))


def test_the_version_is_written_in_one_place_and_the_registry_names_it() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/rlm_mem/__init__.py"
    said = [
        named(path)
        for path in sorted(SOURCE.rglob("*"))
        if path.name in ("__init__.py", "plugin.json") and f'"{__version__}"' in text(path)
    ]
    assert said == ["src/rlm_mem/__init__.py"]
    assert {REGISTRY["version"], *(one["version"] for one in REGISTRY["packages"])} == {__version__}


def test_the_sample_package_can_be_installed_with_this_version() -> None:
    sample = tomllib.loads(text(ROOT / "examples" / "plugin" / "pyproject.toml"))
    needed = [Requirement(one) for one in sample["project"]["dependencies"]]
    assert [one.name for one in needed] == [PROJECT["project"]["name"]]
    assert __version__ in needed[0].specifier


def test_the_changelog_has_the_version_with_its_date_and_kinds_of_change() -> None:
    page = text(ROOT / "CHANGELOG.md")
    versions = re.findall(r"^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$", page, re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    assert versions[1][0] == __version__
    assert all(date for _, date in versions[1:])
    assert [date for _, date in versions[1:]] == sorted((date for _, date in versions[1:]), reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", page, re.MULTILINE)) <= kinds


def test_the_entry_of_the_registry_keeps_the_rules_of_its_schema() -> None:
    """Those of schema 2025-12-11 that concern a Python package that is started over stdio."""
    assert REGISTRY["$schema"].endswith("/schemas/2025-12-11/server.schema.json")
    assert set(REGISTRY) <= {
        "$schema",
        "_meta",
        *["name", "title", "description", "version", "packages", "remotes", "repository"],
    }
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", REGISTRY["name"])
    assert 3 <= len(REGISTRY["name"]) <= 200
    assert all(1 <= len(REGISTRY[name]) <= 100 for name in ("title", "description"))
    assert f"mcp-name: {REGISTRY['name']}" in text(
        ROOT / "README.md"
    )  # by which the registry knows the owner of the package
    for package in REGISTRY["packages"]:
        assert {"registryType", "identifier", "transport", "version"} <= set(package)
        assert package["registryType"] == "pypi"
        assert package["identifier"] == PROJECT["project"]["name"]
        assert package["transport"] == {"type": "stdio"}
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
        assert not package.get("runtimeArguments") or package["runtimeHint"] == "uvx"
        for argument in (*package.get("runtimeArguments", ()), *package["packageArguments"]):
            known = {
                "type",
                "description",
                "format",
                "isRequired",
                "isRepeated",
                "isSecret",
                "default",
                "placeholder",
                "value",
                "choices",
            }
            assert set(argument) <= known | {"name" if argument["type"] == "named" else "valueHint"}
            assert argument["type"] in ("named", "positional")
            assert (
                "name" in argument if argument["type"] == "named" else {"value", "valueHint"} & set(argument)
            )
            assert argument.get("format", "string") in ("string", "number", "boolean", "filepath")


def test_all_that_others_wrote_and_we_ship_has_its_licence_beside_it() -> None:
    """What is under ``vendor`` is in its table with a licence file; the tests of the dashboard compare its sums."""
    folders = [path for path in SOURCE.rglob("vendor") if path.is_dir()]
    wrong = []
    for folder in folders:
        table = text(folder / "VENDORED.md")
        for path in sorted(folder.iterdir()):
            if path.name != "VENDORED.md" and f"`{path.name}`" not in table:
                wrong.append(f"{named(path)} is not in VENDORED.md")
        for licence in re.findall(r"`([\w.-]+-LICENSE[\w.]*)`", table):
            if not (folder / licence).is_file():
                wrong.append(f"{named(folder)} lacks {licence}")
    minified = [
        path for path in SOURCE.rglob("*.js") if max(map(len, text(path).splitlines()), default=0) > 2_000
    ]
    wrong += [f"{named(path)} is minified" for path in minified if path.parent.name != "vendor"]
    assert not wrong, listed(wrong)
    assert PROJECT["project"]["license-files"] == ["LICENSE", "src/rlm_mem/dashboard/static/vendor/*LICENSE*"]


def test_the_licences_of_what_is_installed_with_it_are_documented() -> None:
    (page,) = [path for path in PAGES if named(path) == "docs/dependencies.md"]
    section = text(page).split("\n## Licences\n", 1)[1].split("\n## ", 1)[0]
    wanted = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["server"]
    names = [re.split(r"[<>=!~\[ ]", one, maxsplit=1)[0] for one in wanted]
    missing = [name for name in names if f"| `{name}` |" not in section]
    assert not missing, listed(missing, "add its licence to the table in docs/dependencies.md")

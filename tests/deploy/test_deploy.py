"""The files of ``deploy/``: what each of them starts really starts, and answers what each of them asks."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

DEPLOY = Path(__file__).parents[2] / "deploy"
COMMANDS = Path(sys.executable).parent
PORT = "7412"
SITE = "memory.example"
TOKEN = "a token that is long enough"


def documents(name: str) -> list[Any]:
    """The documents of a YAML file; a repeated key is an error."""
    return list(YAML(typ="safe").load_all((DEPLOY / name).read_text(encoding="utf-8")))


def instructions() -> list[tuple[str, str]]:
    """Those of the Dockerfile, lines that go on joined."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def starts() -> dict[str, tuple[list[str], list[str]]]:
    """What each file starts, and how it asks whether that is ready; empty: it does not ask."""
    memory = documents("compose.yaml")[0]["services"]["memory"]
    pod = next(one for one in documents("kubernetes.yaml") if one["kind"] == "Deployment")["spec"]["template"]
    container = next(one for one in pod["spec"]["containers"] if one["name"] == "memory")
    unit = (DEPLOY / "rlm-mem.service").read_text(encoding="utf-8")
    line = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert line is not None
    assert memory["healthcheck"]["test"][0] == "CMD"
    return {
        "compose": (
            ["rlm-mem", *(word.replace("${MEMORY_SITE:-localhost}", SITE) for word in memory["command"])],
            memory["healthcheck"]["test"][1:],
        ),
        "kubernetes": (["rlm-mem", *container["args"]], container["readinessProbe"]["exec"]["command"]),
        "systemd": (["rlm-mem", *shlex.split(line[1])[1:]], []),
    }


LISTENS = next(
    container["livenessProbe"]["exec"]["command"]
    for one in documents("kubernetes.yaml")
    if one["kind"] == "Deployment"
    for container in one["spec"]["template"]["spec"]["containers"]
    if "livenessProbe" in container
)


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[int]:
    """The server that a file starts, at a free port and below a folder of the test."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    words = [str(COMMANDS / command[0]), *command[1:]]
    words = [word.replace(PORT, str(port)).replace("/var/lib/rlm-mem", str(folder)) for word in words]
    environ = {
        "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "RLM_MEM_BRAIN": str(folder / "brain"),
        **({} if "--token-file" in words else {"RLM_MEM_TOKEN": TOKEN}),
    }
    process = subprocess.Popen(words, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = ""
        while "MCP at " not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.parametrize("name", ["compose", "systemd"])
def test_the_server_that_a_file_starts_is_alive_as_the_file_asks_and_serves_the_proxy(
    name: str, tmp_path: Path
) -> None:
    found = starts()
    assert found["kubernetes"] == found["compose"], "one of them is started here"
    command, ready = found[name]
    with running(command, tmp_path) as port:
        environ = {"PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}", "RLM_MEM_TOKEN": TOKEN}
        for asks in [ready, LISTENS] if ready else []:
            wait_for([word.replace(PORT, str(port)) for word in asks], environ)
        token = TOKEN if ready else wait_for_text(tmp_path / "token")
        headers = {"Authorization": f"Bearer {token}"}
        if ready:  # as the proxy hands it on
            headers |= {"Host": SITE, "X-Forwarded-Proto": "https"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/stats", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert json.load(answer)
        if ready:
            words = [word.replace(PORT, str(port)) for word in ready]
            other = {**environ, "RLM_MEM_TOKEN": "another token that is long"}
            assert subprocess.run(words, env=other, capture_output=True).returncode != 0


def wait_for(words: list[str], environ: dict[str, str]) -> None:
    """Ask as an engine does, until it is alive."""
    end = time.monotonic() + 30
    while subprocess.run(words, env=environ, capture_output=True, timeout=20).returncode:
        assert time.monotonic() < end, "it never was alive"


def wait_for_text(file: Path) -> str:
    end = time.monotonic() + 30
    while not file.exists() or not file.read_text().strip():
        assert time.monotonic() < end, f"{file} never came"
    return file.read_text().strip()


def test_every_proxy_leads_to_the_server_by_its_own_name() -> None:
    configured = next(one for one in documents("kubernetes.yaml") if one["kind"] == "ConfigMap")
    for text in ((DEPLOY / "Caddyfile").read_text(), configured["data"]["Caddyfile"]):
        assert f"reverse_proxy 127.0.0.1:{PORT} " in text
        assert "header_up Host" not in text, "the server asks for the name of the site"
        assert text.count("{\n") == len(re.findall(r"^\s*\}$", text, re.MULTILINE))


def test_the_parts_of_compose_and_kubernetes_name_each_other() -> None:
    compose = documents("compose.yaml")[0]
    services, example = compose["services"], (DEPLOY / "example.env").read_text()
    used = {mount.split(":")[0] for one in services.values() for mount in one["volumes"] if mount[0] != "."}
    assert used == set(compose["volumes"])
    assert services["memory"]["network_mode"] == "service:proxy"
    assert "ports" not in services["memory"] and "ports" not in services["database"]
    named = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert named == set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    by_kind = {one["kind"]: one for one in documents("kubernetes.yaml")}
    pod = by_kind["Deployment"]["spec"]["template"]
    assert by_kind["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    volumes = {one["name"] for one in pod["spec"]["volumes"]}
    for container in pod["spec"]["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
    users = [rest for word, rest in instructions() if word == "USER"]
    assert users == [f"{pod['spec']['securityContext'][key]}:10001" for key in ("runAsUser",)]


def test_tokens_of_the_team_have_a_file_that_outlives_the_container() -> None:
    """A database has none of its own."""
    memory = documents("compose.yaml")[0]["services"]["memory"]
    mounted = [volume.split(":")[1] for volume in memory["volumes"]]
    assert str(Path(memory["environment"]["RLM_MEM_TOKENS"]).parent) in mounted


def test_the_image_is_built_from_what_the_build_gets() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (DEPLOY.parent / source).exists()
                assert f"!{source.removeprefix('./')}" in ignored
    (first, *_) = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    extras = set(re.findall(r"\[([\w,]+)\]", first)[0].split(","))
    project = (DEPLOY.parent / "pyproject.toml").read_text()
    assert all(f"\n{extra} = [" in project for extra in extras)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (DEPLOY / "rlm-mem.service").read_text(encoding="utf-8")
    copy = tmp_path / "rlm-mem.service"
    copy.write_text(unit.replace("/opt/rlm-mem/bin", str(COMMANDS)), encoding="utf-8")
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.slow
def test_the_steps_of_the_image_give_a_server(tmp_path: Path) -> None:
    """What an engine would run, in a folder instead of an image: needs an index of packages."""
    build, opt = tmp_path / "build", tmp_path / "opt"
    build.mkdir()
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                path = DEPLOY.parent / source
                (shutil.copytree if path.is_dir() else shutil.copy)(path, build / path.name)
        if word == "RUN" and "useradd" not in rest:
            step = rest.replace("/opt/rlm-mem", str(opt)).replace("python -m", f"{sys.executable} -m")
            subprocess.run(shlex.split(step), cwd=build, check=True, capture_output=True, timeout=900)
    entry = [json.loads(rest) for word, rest in instructions() if word in ("ENTRYPOINT", "CMD")]
    command = [str(opt / "bin" / entry[0][0]), *entry[0][1:], *entry[1]]
    environ = {"HOME": str(tmp_path), "RLM_MEM_BRAIN": str(tmp_path / "brain"), "PATH": os.environ["PATH"]}
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    ran = subprocess.run(
        command, env=environ, input=json.dumps(hello) + "\n", capture_output=True, text=True, timeout=120
    )
    assert json.loads(ran.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "rlm-mem"

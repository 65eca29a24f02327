"""Tokens for the clients of a server: created, listed and revoked on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem.access.tokens import TokenFile
from tests.cli.conftest import Run


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TokenFile:
    """The file of tokens that the environment names."""
    path = tmp_path / "tokens.json"
    monkeypatch.setenv("RLM_MEM_TOKENS", str(path))
    return TokenFile(path)


@pytest.fixture
def token(run: Run, file: TokenFile) -> str:
    """A token named ci that reads the default namespace, as the command printed it."""
    return str(run("token", "create", "ci", "--allow", "read", "--in", "default", "--json").json["token"])


def test_a_token_is_listed_without_what_it_can_be_made_from(run: Run, file: TokenFile, token: str) -> None:
    listed = run("token", "list")
    assert listed.code == 0 and "ci" in listed.out and "active" in listed.out and "1 token" in listed.out
    (shown,) = run("token", "list", "--json").json
    assert (shown["name"], shown["state"], shown["permissions"]) == ("ci", "active", ["read"])
    assert "digest" not in shown and token not in str(shown) + listed.out


def test_a_revoked_token_gives_no_access(run: Run, file: TokenFile, token: str) -> None:
    assert file.find(token) is not None
    revoked = run("token", "revoke", "ci", "--json").json
    assert (revoked["name"], revoked["state"]) == ("ci", "revoked") and "digest" not in revoked
    assert file.find(token) is None
    assert run("token", "revoke", "ci").code == 1


def test_a_subject_of_the_issuer_is_revoked_and_readmitted(run: Run, file: TokenFile) -> None:
    assert run("token", "revoke", "oauth:bob").out.startswith("revoked oauth:bob")
    assert "oauth:bob" in run("token", "list").out
    assert run("token", "readmit", "oauth:bob", "--json").json["readmitted"] == "oauth:bob"
    assert "oauth:bob" not in run("token", "list").out
    assert run("token", "readmit", "oauth:bob").code == 1

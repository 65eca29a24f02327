"""Secrets on the way in: found by the formats that providers gave them, and ordinary words are not."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.typed import present

from rlm_mem import Memory
from rlm_mem.config import Config, SecretAction, SecretsConfig
from rlm_mem.errors import InputError, InvalidChunk
from rlm_mem.ingest.remember import RememberOperation
from rlm_mem.interchange import import_source
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.text.secret_rules import KEY_RULES, PII_RULES
from rlm_mem.text.secrets import SecretsFound, find_secrets, hide, screen

HEX = "0123456789abcdef"
ALNUM = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv"

# Made up, and put together here so that no scanner takes this file for a leak.
EXAMPLES = {
    "model-provider-key": "sk-" + "ant-api03-" + ALNUM,
    "model-host-key": "hf" + "_" + ALNUM,
    "langsmith-key": "lsv2" + "_pt_" + HEX * 2 + "_" + HEX[:10],
    "pinecone-key": "pcsk" + "_" + ALNUM * 2,
    "tavily-key": "tvly" + "-dev-" + ALNUM,
    "firecrawl-key": "fc" + "-" + HEX * 2,
    "aws-access-key": "AKIA" + "IOSFODNN7EXAMPLE",
    "google-api-key": "AIza" + "Sy" + ALNUM + "a",
    "google-oauth-token": "ya29" + ".a0" + ALNUM,
    "google-client-secret": "GOCSPX" + "-" + ALNUM[:28],
    "azure-storage-key": "Account" + "Key=" + "Zm9v" * 21 + "Zg==",
    "azure-client-secret": "abc8" + "Q~" + ALNUM + "x",
    "alibaba-access-key": "LTAI" + ALNUM[:20],
    "tencent-secret-id": "AKID" + ALNUM,
    "digitalocean-token": "dop" + "_v1_" + HEX * 4,
    "heroku-key": "HRKU" + "-" + ALNUM + "-" + ALNUM,
    "fly-token": "fo1" + "_" + ALNUM + "abcdefghijk",
    "netlify-token": "nfp" + "_" + ALNUM + "abcdefgh",
    "supabase-token": "sbp" + "_" + HEX * 2 + HEX[:8],
    "planetscale-token": "pscale" + "_tkn_" + ALNUM,
    "databricks-token": "dapi" + HEX * 2,
    "cloudflare-origin-key": "v1.0" + "-" + HEX + HEX[:8] + "-" + HEX * 9 + "ab",
    "github-token": "ghp" + "_" + ALNUM + "abcd",
    "gitlab-token": "glpat" + "-" + ALNUM[:20],
    "atlassian-token": "ATATT3" + ALNUM * 3,
    "npm-token": "npm" + "_" + ALNUM + "abcd",
    "pypi-token": "pypi" + "-AgE" + ALNUM * 2,
    "rubygems-key": "rubygems" + "_" + HEX * 3,
    "crates-token": "cio" + ALNUM,
    "docker-token": "dckr" + "_pat_" + ALNUM[:27],
    "vault-token": "hvs" + "." + ALNUM,
    "terraform-token": ALNUM[:14] + "." + "atlasv1." + ALNUM * 2,
    "pulumi-token": "pul" + "-" + HEX * 2 + HEX[:8],
    "doppler-token": "dp" + ".pt." + ALNUM + ALNUM[:11],
    "onepassword-token": "ops" + "_eyJ" + ALNUM * 7,
    "age-key": "AGE-SECRET" + "-KEY-1" + "Q" * 58,
    "grafana-token": "glsa" + "_" + ALNUM + "_" + HEX[:8],
    "newrelic-key": "NRAK" + "-" + "A1B2C3D4E5F6G7H8I9J0K1L2M3N",
    "sentry-token": "sntryu" + "_" + HEX * 4,
    "postman-key": "PMAK" + "-" + HEX + HEX[:8] + "-" + HEX * 2 + "ab",
    "slack-token": "xoxb" + "-123456789012-" + ALNUM,
    "slack-webhook": "https://hooks." + "slack.com/services/T0001/B0001/" + ALNUM,
    "discord-webhook": "https://discord" + ".com/api/webhooks/123456789012345678/" + ALNUM * 2,
    "telegram-token": "123456789" + ":AA" + ALNUM + "a",
    "linear-key": "lin" + "_api_" + ALNUM + "abcdefgh",
    "notion-token": "ntn" + "_" + ALNUM + "abcdefgh",
    "airtable-token": "pat" + ALNUM[:14] + "." + HEX * 4,
    "figma-token": "figd" + "_" + ALNUM + "abcdefgh",
    "contentful-token": "CFPAT" + "-" + ALNUM + "abcdefghijk",
    "hubspot-token": "pat" + "-eu1-01234567-89ab-cdef-0123-456789abcdef",
    "dropbox-token": "sl" + "." + ALNUM * 5,
    "facebook-token": "EAA" + ALNUM * 3,
    "stripe-webhook-secret": "whsec" + "_" + ALNUM,
    "square-token": "sq0" + "atp-" + ALNUM[:22],
    "shopify-token": "shpat" + "_" + HEX * 2,
    "shippo-token": "shippo" + "_live_" + HEX * 2 + HEX[:8],
    "easypost-key": "EZAK" + ALNUM + ALNUM[:22],
    "sendgrid-key": "SG" + "." + ALNUM[:22] + "." + ALNUM,
    "mailgun-key": "key" + "-" + HEX * 2,
    "mailchimp-key": HEX * 2 + "-us" + "14",
    "twilio-key": "SK" + HEX * 2,
    "brevo-key": "xkeysib" + "-" + HEX * 4 + "-" + ALNUM[:16],
    "json-web-token": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + ALNUM,
    "authorization-header": "Authorization: Bearer " + ALNUM,
    "key-header": "x-api-key: " + "very.own.format.7",
    "password-in-address": "postgresql://me:" + "hunter22@db/x",
    "assigned-secret": "DB_PASSWORD=" + "correct1horse2battery",
    "e-mail-address": "ada.lovelace@example.org",
    "telephone-number": "+44 20 7946 0958",
}


def names(text: str, **kinds: bool) -> list[str]:
    return [one.rule for one in find_secrets(text, **kinds)]


def test_every_rule_has_its_example() -> None:
    assert {rule.name for rule in (*KEY_RULES, *PII_RULES)} == EXAMPLES.keys()
    assert len(KEY_RULES) >= 60


@pytest.mark.parametrize(
    "text",
    [
        r'{"body": "{\"user\": \"ana\", \"password\": \"%s\"}"}',
        r"{\\\"client_secret\\\": \\\"%s\\\"}",
        "password：%s",
        "API_KEY ＝ %s",
        "**Password:** %s",
        "**Token**: `%s`",
        "password: “%s”",
        r"\"x-api-key\": \"%s\"",
    ],
)
def test_a_named_secret_is_found_in_quotes_escapes_and_marks_of_any_kind(text: str) -> None:
    value = "correct1horse2battery"
    found = find_secrets(text % value)
    assert hide(text % value, found) == text % "[redacted]"


@pytest.mark.parametrize(("rule", "secret"), EXAMPLES.items(), ids=list(EXAMPLES))
def test_each_format_is_found_anywhere_in_a_text(rule: str, secret: str) -> None:
    for text in (secret, f"It is {secret}, keep it.", f'"{secret}"', f"line\n{secret}\nline"):
        assert rule in names(text), text
        hidden = hide(text, find_secrets(text))
        assert (
            secret.rsplit("/", 1)[-1].rsplit(" ", 1)[-1] not in hidden.replace("@db/x", "")
            or rule == "password-in-address"
        )


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-" + ALNUM[:10], "sk-" + ALNUM[:16], "AKIA" + "Q7" * 8, "LTAI" + ALNUM[:16], "Bearer " + ALNUM[:16],
        "x-api-key: " + ALNUM[:8], "token=" + ALNUM[:10], "pwd: " + ALNUM[:10], "a://u:p@h",
    ],
)  # fmt: skip
def test_the_shortest_of_a_format_is_found_among_short_words(secret: str) -> None:
    assert find_secrets(f"It is {secret} for now.")


@pytest.mark.parametrize(
    "text",
    [
        "The token count is 145, tokens: 1,024, max_tokens=4096, token: 42",
        "token count", "a secret garden", "the password field is empty", "Password: see the wiki",
        "key: the boat shed, behind the clock", "password = os.environ['DB_PASSWORD']", "secret=<your secret here>",
        "The key-value store has api keys; access tokens expire in 3600 seconds.",
        "chunk-2026-02-10-a1b2c3d4 of conv-abc123 at 2026-02-10T21:37:00.000000Z",
        "sk-learn-documentation-team and risk-free-tasks-for-everyone-here",
        "basic configuration and bearer responsibilities",
        "git clone git@github.com:owner/name.git, see https://example.org/a@b and @someone",
        "Version 1.2.3.4, ISBN 978-3-16-148410-0, 2026-02-10 21:37, 10.0.0.255, 1234567890123, 12-34-56",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 and 550e8400-e29b-41d4-a716-446655440000",
        "sha256:" + HEX * 4, "précio 3, pat on the back, SK is Slovakia, hf band radio",
        "monkey business, keyboard, tokenizer=o200k_base", "The recipe says 1-2 cups, 250 g, 180-200 degrees",
    ],
)  # fmt: skip
def test_ordinary_words_are_no_secrets(text: str) -> None:
    assert names(text) == []


@pytest.mark.parametrize(
    "number",
    [
        "+49 30 123456",
        "+1 555 234 5678",
        "(555) 234-5678",
        "555-234-5678",
        "+4915112345678",
    ],
)
def test_telephone_numbers(number: str) -> None:
    assert names(f"Call {number} at noon.") == ["telephone-number"]


def test_a_private_key_is_found_as_a_whole() -> None:
    pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n-----END OPENSSH PRIVATE KEY-----"
    assert hide(f"a {pem} b", find_secrets(f"a {pem} b")) == "a [redacted] b"
    assert names("-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----") == [
        "private-key"
    ]


@given(st.text(max_size=200))
def test_hiding_leaves_nothing_to_find_and_nothing_else_changed(text: str) -> None:
    screened = screen(text, SecretsConfig(pii=True))
    assert find_secrets(screened.text) == []
    if not screened.found:
        assert screened.text == text


@pytest.mark.parametrize("secret", EXAMPLES.values(), ids=list(EXAMPLES))
def test_what_was_hidden_is_not_found_again(secret: str) -> None:
    once = screen(f"see {secret} here", SecretsConfig(pii=True))
    assert once.hidden
    assert screen(once.text, SecretsConfig(pii=True)).found == []


@pytest.mark.parametrize(
    "part", [*EXAMPLES.values(), "a@", "+1 2", "password=", "hf_", "://a:", "555-", "eyJ."]
)
def test_the_work_grows_linearly(part: str) -> None:
    def work(size: int) -> float:
        text = part * (size // len(part))
        began = time.process_time()
        find_secrets(text)
        return time.process_time() - began

    small = min(work(10_000) for _ in range(3))
    assert min(work(40_000) for _ in range(3)) < 10 * small + 0.05


def test_positions_behind_what_was_hidden_are_those_of_the_original() -> None:
    key = EXAMPLES["github-token"]
    text = f"one {key} two {key} three"
    screened = screen(text, SecretsConfig(pii=True))
    for word in ("one", "two", "three"):
        assert screened.original(screened.text.index(word)) == text.index(word)


# --- in a store ------------------------------------------------------------------------------------


def opened(folder: Path, **settings: Any) -> ChunkStore:
    return ChunkStore(folder / "memory", config=Config.load(None, environ={}, secrets=settings))


def test_by_default_a_key_is_hidden_with_a_warning_that_does_not_repeat_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = EXAMPLES["github-token"]
    with opened(tmp_path) as store, caplog.at_level(logging.INFO, "rlm_mem.secrets"):
        chunk = store.create_chunk(f"The deploy token is {key}")
        assert chunk.content == "The deploy token is [redacted:github-token]"
        changed = store.update_chunk(chunk.id, content="Write to ada@example.org")
        assert changed is not None
        assert changed.content == "Write to ada@example.org"
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"what looks like a GitHub token was hidden in {chunk.id}")
    ]
    assert not any(key in file.read_text("utf-8", "replace") for file in tmp_path.rglob("*.json"))


def everything_below(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


@pytest.mark.parametrize(("settings", "action"), [({}, None), ({"action": "keep"}, "redact")])
def test_secrets_are_hidden_on_every_path_of_input(
    tmp_path: Path, settings: dict[str, str], action: SecretAction | None
) -> None:
    key = EXAMPLES["aws-access-key"]
    source = tmp_path / "notes.md"
    source.write_text(f"# Notes\n\nImported {key}.\n")
    with opened(tmp_path / "brain", pii=True, **settings) as store:
        memory = Memory(store)
        chunk = store.create_chunk(
            f"Key {key}.", metadata={"note": [key]}, tags=[key, "x"], provenance={"said": key}, secrets=action
        )
        assert chunk.content == "Key [redacted:aws-access-key]."
        assert chunk.metadata.extra == {"note": ["[redacted:aws-access-key]"]}
        other = store.create_chunk("another one")
        link = {"target_id": other.id, "type": "supports", "strength": 0.5, "reasoning": f"see {key}"}
        changed = memory.update(chunk.id, content=f"New {key}", links=[link], secrets=action)
        assert changed is not None
        assert changed.content == "New [redacted:aws-access-key]"
        assert changed.links[0].reasoning == "see [redacted:aws-access-key]"
        with memory.batch():
            made = memory.remember(
                f"Remember {key} and ada@example.org.", metadata={"a": key}, tags=key, secrets=action
            )
        assert made.secrets == SecretsFound({"aws-access-key": 3, "e-mail-address": 1}, hidden=True)
        assert made.secrets.count == 4
        asked = RememberOperation(store).remember(f"Also {key}.", secrets=action)
        assert (asked["secrets"], asked["secrets_hidden"]) == ({"aws-access-key": 1}, 1)
        chunk.content, chunk.id = f"Adopted {key}", "chunk-other"
        assert store.adopt(chunk, secrets=action).content == "Adopted [redacted:aws-access-key]"
        report = import_source(store, source, secrets=action)
        assert (report.secrets, report.secrets_hidden) == ({"aws-access-key": 1}, 1)
        if not settings:  # without an argument of their own: as configured
            store.add_link(other.id, chunk.id, "supports", reasoning=key)
            entry = memory.continuum.traces.record(
                f"deploy with {key}", [{"tool": "sh", "call": f"login {key}"}], notes=key
            )
            memory.continuum.traces.use(entry.key, False, error=f"denied: {key}")
            memory.continuum.workspace.after_tool_call("sh", f"login {key}", variables={"token": key})
    assert key.encode() not in everything_below(tmp_path / "brain")


@pytest.mark.parametrize(
    ("settings", "action"), [({"action": "keep"}, None), ({"action": "warn"}, None), ({}, "keep")]
)
def test_what_is_kept_is_never_said_to_be_hidden(
    tmp_path: Path, settings: dict[str, str], action: SecretAction | None
) -> None:
    key = EXAMPLES["aws-access-key"]
    with opened(tmp_path, **settings) as store:
        made = Memory(store).remember(f"Remember {key}.", secrets=action)
        assert made.secrets == SecretsFound({"aws-access-key": 1}, hidden=False)
        assert "in clear" in str(made)
        assert key in present(store.get_chunk(made.chunk_ids[0])).content
        asked = RememberOperation(store).remember(f"Also {key}.", secrets=action)
        assert (asked["secrets"], asked["secrets_hidden"]) == ({"aws-access-key": 1}, 0)


def test_a_call_that_refuses_stores_nothing(tmp_path: Path) -> None:
    key = EXAMPLES["aws-access-key"]
    with opened(tmp_path) as store:
        for given in ({"text": key}, {"text": "fine", "metadata": {"a": {"b": key}}}):
            with pytest.raises(InvalidChunk, match="secrets are refused") as caught:
                Memory(store).remember(**given, secrets="refuse")
            assert key not in str(caught.value)
        with pytest.raises(InputError, match="secrets must be one of redact, keep, refuse"):
            Memory(store).remember("x", secrets="hide")  # type: ignore[arg-type]
        assert store.list_chunks() == []


def test_a_private_key_longer_than_a_chunk_is_redacted_whole(tmp_path: Path) -> None:
    pem = (
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "\n\n".join(ALNUM * 2 for _ in range(60))
        + "\n-----END RSA PRIVATE KEY-----"
    )
    with opened(tmp_path, action="redact") as store:
        result = RememberOperation(store).remember(f"Before it.\n\n{pem}\n\nAfter it.")
        text = " ".join(present(store.get_chunk(item)).content for item in result["chunk_ids"])
    assert ALNUM not in text
    assert "Before it." in text
    assert "After it." in text


def test_refused_with_the_place_and_never_the_secret(tmp_path: Path) -> None:
    key = EXAMPLES["slack-token"]
    with opened(tmp_path, action="refuse") as store:
        with pytest.raises(InvalidChunk, match=r"line 2 .* a Slack token") as caught:
            store.create_chunk(f"one\n{key}")
        assert key not in f"{caught.value} {caught.value.hint}"
        result = RememberOperation(store).remember(f"see {key}")
        assert result["success"] is False
        assert store.list_chunks() == []


def test_addresses_can_be_left_alone_and_everything_can(tmp_path: Path) -> None:
    with opened(tmp_path / "a", action="refuse", pii=False) as store:
        assert store.create_chunk("Write to ada@example.org").content == "Write to ada@example.org"
    with opened(tmp_path / "b", action="off") as store:
        assert store.create_chunk(EXAMPLES["slack-token"]).content == EXAMPLES["slack-token"]


@pytest.mark.parametrize("kind", ["OPENSSH ", "RSA ", ""])
def test_a_private_key_that_is_cut_off_is_found(kind: str) -> None:
    begin = f"-----BEGIN {kind}PRIVATE KEY-----"
    cut = f"See:\n{begin}\n{ALNUM}\n{ALNUM}"
    assert names(cut) == ["private-key"]
    (found,) = find_secrets(cut)
    assert cut[: found.start] == "See:\n" and found.end == len(cut)
    assert names(f"A file that begins with {begin} is a private key.") == []

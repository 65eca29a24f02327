"""`rlm-mem token`: creates, lists and revokes a server's named tokens; revokes and readmits OAuth subjects."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from rlm_mem.access.tokens import TokenFile, TokenRecord, token_path
from rlm_mem.cli import options
from rlm_mem.cli.call import BrainCall, login_name
from rlm_mem.cli.options import argument, option
from rlm_mem.cli.terminal import FOLDED, amount, moment, note, print_table, print_text

File = Annotated[
    Path | None, options.tokens("The file with the tokens. Default: tokens.json in the brain folder.")
]


def create(
    call: BrainCall,
    name: Annotated[str, argument("NAME", "Its name: who or what it is for, such as ana, ci, laptop-ben.")],
    namespaces: Annotated[
        list[str],
        option(
            "--in", "NAMESPACE", "A namespace in its scope, team/* for all below team, * for all; repeatable."
        ),
    ] = [],  # noqa: B006 - Typer makes a new list
    allow: Annotated[
        str, option("--allow", "LIST", "read, write, review, admin or metrics; several with commas.")
    ] = "read,write",
    lasts: Annotated[str, option("--expires", "WHEN", "Its lifetime (90d), a date, or never.")] = "90d",
    rate: Annotated[
        float | None, option("--rate", "N", "Maximum requests per second with this token.")
    ] = None,
    tokens: File = None,
) -> None:
    """Create a token and print it once. Only its hash is stored."""
    file = TokenFile(token_path(call.place, tokens))
    record, token = file.create(
        name,
        namespaces,
        [part.strip() for part in allow.split(",") if part.strip()],
        lasts=None if lasts == "never" else lasts,
        rate=rate,
        by=f"cli:{login_name()}",
    )
    if call.printed_json({"token": token, **_plain(file, record)}):
        return
    # Only the token goes to stdout, for scripts.
    print(token)
    ends = f"until {moment(record.expires_at)}" if record.expires_at else "until it is revoked"
    reached = ", ".join(record.namespaces) or "no namespace"
    note(f"{record.name}: {', '.join(record.permissions)} in {reached}, {ends}")


def list_(call: BrainCall, tokens: File = None) -> None:
    """List the tokens, including expired and revoked ones."""
    file = TokenFile(token_path(call.place, tokens))
    records = file.records()
    if call.printed_json([_plain(file, one) for one in records]):
        return
    rows = []
    for one in records:
        ends = one.revoked_at or one.expires_at
        scope = ", ".join(one.permissions), ", ".join(one.namespaces)
        rows.append((one.name, one.id, file.state_of(one), *scope, moment(ends) if ends else "never"))
    columns = ("permissions", FOLDED), ("namespaces", FOLDED), ("ends", {"no_wrap": False})
    if rows:
        print_table(("name", "id", "state", *columns), rows)
    print_text(amount(len(records), "token"), "dim")


def revoke(
    call: BrainCall,
    name: Annotated[
        str,
        argument(
            "NAME",
            "The name or the id of a token; oauth:SUB for all tokens of a subject of the OAuth issuer.",
        ),
    ],
    tokens: File = None,
) -> None:
    """Revoke a token: running servers refuse it from the next request on."""
    file = TokenFile(token_path(call.place, tokens))
    record = file.revoke(name, by=f"cli:{login_name()}")
    call.report(_plain(file, record), f"revoked {record.name} ({record.id})")


def readmit(
    call: BrainCall,
    name: Annotated[str, argument("NAME", "oauth:SUB, as rlm-mem token list shows it.")],
    tokens: File = None,
) -> None:
    """Accept the tokens of a revoked subject of the OAuth issuer again."""
    file = TokenFile(token_path(call.place, tokens))
    record = file.readmit(name)
    call.report({"readmitted": record.name, "revoked_at": record.revoked_at}, f"readmitted {record.name}")


def _plain(file: TokenFile, record: TokenRecord) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(record)
    del shown["digest"]
    return {"state": file.state_of(record), **shown}

"""Receipts: the options of `rlm-mem recall` that write one, and `rlm-mem verify`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlm_mem.cli.call import Call
from rlm_mem.cli.options import argument, option
from rlm_mem.cli.terminal import long_text, one_line, print_text, text
from rlm_mem.errors import InputError
from rlm_mem.recall.outcome import SUGGESTED
from rlm_mem.record import FrozenRecord

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.receipts import Verification

RECEIPTS = "Receipt"
PASSWORD = "RLM_MEM_KEY_PASSWORD"
STYLES = {
    "holds": "green",
    "changed": "yellow",
    "altered": "red",
    "incomplete": "yellow",
    "not checked": "dim",
}

ReceiptFile = Annotated[
    Path | None,
    option("--receipt", "FILE", "Also write the answer as a receipt, for rlm-mem verify.", panel=RECEIPTS),
]
BundleFile = Annotated[
    Path | None,
    option(
        "--bundle",
        "FILE",
        "With --receipt: also write a bundle, to verify the receipt without this memory.",
        panel=RECEIPTS,
    ),
]
SigningKey = Annotated[
    Path | None,
    option(
        "--sign",
        "KEY",
        f"With --receipt: sign it with this Ed25519 private key ({PASSWORD} is its password).",
        panel=RECEIPTS,
    ),
]


class ReceiptWanted(FrozenRecord, frozen=True):
    """The receipt that a recall should write; existing files are refused before the model is called.

    Raises:
        InputError: the options contradict each other, or a file exists.
    """

    receipt: Path | None
    bundle: Path | None
    sign: Path | None
    as_of: str | None = None

    def __post_init__(self) -> None:
        if self.receipt is None:
            if self.bundle is not None or self.sign is not None:
                raise InputError("--bundle and --sign belong to a receipt", hint="add --receipt FILE")
            return
        if self.as_of is not None:
            raise InputError("a receipt cannot cover a recall with --as-of", hint="leave one out")
        from rlm_mem.receipts import check_key, check_new

        for path in (self.receipt, self.bundle):
            if path is not None:
                check_new(path)
        if self.sign is not None:
            check_key(self.sign, os.environ.get(PASSWORD))

    def write(self, memory: Memory, result: object) -> dict[str, str]:
        """Write the files; return their paths by kind, ``receipt`` and ``bundle``."""
        if self.receipt is None:
            return {}
        made = memory.receipt(
            result, bundle=self.bundle is not None, key=self.sign, password=os.environ.get(PASSWORD)
        )
        written = {"receipt": str(made.write(self.receipt))}
        if made.bundle is not None and self.bundle is not None:
            written["bundle"] = str(made.bundle.write(self.bundle))
        return written


def verify(
    call: Call,
    file: Annotated[Path, argument("FILE", "The receipt.")],
    bundle: Annotated[
        Path | None, option("--bundle", "FILE", "Verify against this bundle; with --brain, against both.")
    ] = None,
    key: Annotated[
        str | None, option("--key", "KEY", "The public key that must have signed it: a file or a line.")
    ] = None,
) -> None:
    """Verify a receipt by running its programs again: what is unchanged, what has changed since, what was altered.

    Exits with 0 if everything holds, with 1 otherwise.
    """
    named, place = call.named_brain is not None, call.place
    if bundle is not None and not named:
        from rlm_mem.receipts import verify as check

        found = check(file, bundle=bundle, key=key)
    elif not named and isinstance(place, Path) and not (place / "memory").is_dir():
        raise InputError(
            "there is no memory here to verify against",
            hint="name one with --brain, or a bundle with --bundle",
        )
    else:
        with call.open() as memory:
            found = memory.verify(file, bundle=bundle, key=key)
    data = {"verdict": found.verdict, "checks": found.checks, "signer": found.signer, **found.about}
    call.report(data, lambda: _show(found))
    if not found.holds:
        raise typer.Exit(1)


def _show(found: Verification) -> None:
    if found.receipt is not None:
        print_text(long_text(found.receipt.question.text, "bold"))
        answer = found.receipt.answer
        guess = "" if answer.suggestion is None else f"{SUGGESTED} {answer.suggestion}"
        print_text(long_text(answer.content or guess or answer.outcome))
        print_text("")
    print_text(found.verdict, f"bold {STYLES[found.verdict]}")
    for check in found.checks:
        line = text(f"  {check.status:<12}", STYLES[check.status]) + text(check.part, "cyan")
        print_text(line + text(f"  {one_line(check.detail, 240)}", "dim"))

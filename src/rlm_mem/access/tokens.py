"""Named tokens of a brain, stored in a file with their hashes only.

A token has 256 random bits, so its SHA-256 hash cannot be guessed or looked up; the salt or slow hash that passwords
need would add nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rlm_mem.access.grants import PERMISSIONS, Access, Permission, check_patterns, check_permissions
from rlm_mem.chunk import expiry, format_time
from rlm_mem.errors import ConflictError, InputError, InvalidChunk, InvalidConfig, NotFoundError, StorageError
from rlm_mem.store.core.files import Signature, lock, signature, write_atomic

#: Prefix of every token, so that secret scanners find leaked ones.
PREFIX = "rlm_mem_token_"

#: Prefix for names of subjects of an authorization server; names of tokens cannot have it.
OAUTH = "oauth:"

_FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}\Z")
_SUBJECT = re.compile(rf"{OAUTH}[A-Za-z0-9][A-Za-z0-9._@|:-]{{0,63}}\Z")
_TOKEN = re.compile(rf"{PREFIX}([0-9a-f]{{12}})_[A-Za-z0-9_-]{{43}}\Z")
_MOST = 10_000


class TokenRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A stored token, or a subject of an authorization server whose tokens are revoked here.

    Attributes:
        id: identifier in lists; part of the token, but not secret.
        name: for the audit log; no two active tokens have the same name. For a subject ``oauth:SUB``.
        digest: SHA-256 of the token in hexadecimal; empty for a subject.
        namespaces, permissions: its scope (``grants.Access``).
        created_at, expires_at, revoked_at: UTC; None: never.
        created_by, revoked_by: the persons who did so.
        rate: requests per second; None: the server's limit.
    """

    id: str
    name: str
    digest: str
    namespaces: tuple[str, ...]
    permissions: tuple[Permission, ...]
    created_at: str
    created_by: str = ""
    expires_at: str | None = None
    revoked_at: str | None = None
    revoked_by: str = ""
    rate: float | None = None

    def state(self, now: str) -> str:
        """The state at a time: ``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"

    @property
    def access(self) -> Access:
        """The access that it grants."""
        included = frozenset[Permission]().union(*(PERMISSIONS[one] for one in self.permissions))
        return Access(self.name, self.namespaces, included, self.rate)


class _Contents(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    tokens: list[TokenRecord]


def token_path(brain: Path | str, given: Path | None = None) -> Path:
    """The path of the token file of a brain.

    Args:
        brain: the folder, or a DSN.
        given: path given by the user.

    Raises:
        InvalidConfig: the brain is a database, and no file is named.
    """
    if given is not None:
        return given
    if isinstance(brain, str):
        raise InvalidConfig(
            "a database has no folder for the tokens of its server",
            hint="name a file with --tokens FILE or RLM_MEM_TOKENS",
        )
    return brain / "tokens.json"


class TokenFile:
    """The tokens of a server in a JSON file that several processes can use; thread-safe.

    Each use checks whether the file has changed, so a revoked token is refused with the next request.

    Args:
        path: the file; a missing file means no tokens.
        clock: returns the current time with a time zone.
    """

    def __init__(self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.path = path
        self._clock = clock
        self._guard = threading.Lock()
        self._seen: Signature | None = None
        self._by_id: dict[str, TokenRecord] = {}
        self._subjects: frozenset[str] = frozenset()

    def create(
        self,
        name: str,
        namespaces: Sequence[str],
        permissions: Sequence[str],
        *,
        lasts: str | None = None,
        rate: float | None = None,
        by: str = "",
    ) -> tuple[TokenRecord, str]:
        """Create a token, which is only returned, not stored.

        Args:
            name: letters, digits, ``.``, ``_``, ``@``, ``-``; at most 64.
            namespaces: names, or patterns such as ``team/*``; empty for a token that only reads metrics.
            permissions: of read, write, review, admin, metrics.
            lasts: validity as a duration (``90d``) or end time; None: until it is revoked.
            rate: sustained requests per second; None: the server's limit.
            by: the person who creates it.

        Returns:
            The record, and the token.

        Raises:
            InputError: an argument is invalid. ConflictError: an active token has this name.
            StorageError: the file cannot be used.
        """
        if not _NAME.match(name):
            raise InputError(
                f"{name!r:.80} cannot be the name of a token",
                hint="use up to 64 letters, digits, . _ @ and -, beginning with a letter or digit",
            )
        allowed, reached = check_permissions(permissions), check_patterns(namespaces)
        if not reached and set(allowed) != {"metrics"}:
            raise InputError(
                "a token needs a namespace", hint="name one with --in NAMESPACE, or all with --in '*'"
            )
        if rate is not None and not 0 < rate <= 100_000:
            raise InputError(f"a rate of {rate:g} requests a second is out of range", hint="0 to 100,000")
        now = self._clock()
        try:
            is_time = lasts is not None and "-" in lasts
            ends = expiry(lasts, None, now) if is_time else expiry(None, lasts, now)
        except InvalidChunk:
            raise InputError(
                f"a token cannot last {lasts!r:.60}", hint="give a duration (90d) or a future time"
            ) from None
        identity = secrets.token_hex(6)
        token = f"{PREFIX}{identity}_{secrets.token_urlsafe(32)}"
        record = TokenRecord(
            identity, name, _digest(token), reached, allowed, format_time(now), by, ends, rate=rate
        )
        with self._changing() as tokens:
            if any(one.name == name and one.state(format_time(now)) == "active" for one in tokens):
                raise ConflictError(
                    f"a token {name!r} already exists", hint="revoke it first, or take another name"
                )
            if len(tokens) >= _MOST:
                raise ConflictError(
                    f"there are {_MOST:,} tokens", hint=f"remove old ones from {self.path.name}"
                )
            tokens.append(record)
        return record, token

    def revoke(self, name: str, *, by: str = "", within: Access | None = None) -> TokenRecord:
        """Revoke a token by name or id; of several with the name, the active one.

        ``oauth:SUB`` revokes every token that an authorization server issues to that subject, later ones included,
        until it is readmitted.

        Args:
            by: the person who revokes it.
            within: access of the revoker; tokens with further access are treated as missing.

        Raises:
            NotFoundError: there is none, or it is already revoked. StorageError: the file cannot be used.
        """
        now = format_time(self._clock())
        with self._changing() as tokens:
            everywhere = within is None or within.includes(("*",), ("admin",))
            if _SUBJECT.match(name) and everywhere and all(one.name != name for one in tokens):
                # Revoking a subject requires access to every namespace, since those of its tokens are not known here.
                subject = TokenRecord(
                    secrets.token_hex(6), name, "", ("*",), (), now, by, revoked_at=now, revoked_by=by
                )
                tokens.append(subject)
                return subject
            found = [
                place
                for place, one in enumerate(tokens)
                if name in (one.id, one.name)
                and one.revoked_at is None
                and (within is None or within.includes(one.namespaces, one.permissions))
            ]
            if not found:
                raise NotFoundError(
                    f"there is no token {name!r:.80} to revoke", hint="rlm-mem token list shows all"
                )
            # Expired tokens of the name come first in the file; the last one is active.
            place = found[-1]
            revoked: TokenRecord = msgspec.structs.replace(tokens[place], revoked_at=now, revoked_by=by)
            tokens[place] = revoked
        return revoked

    def readmit(self, name: str) -> TokenRecord:
        """Accept the tokens of a subject of an authorization server again.

        Args:
            name: ``oauth:SUB``.

        Returns:
            The record of its revocation, which is removed.

        Raises:
            NotFoundError: it is not revoked. StorageError: the file cannot be used.
        """
        with self._changing() as tokens:
            found = next((one for one in tokens if one.name == name and not one.digest), None)
            if found is None:
                raise NotFoundError(
                    f"{name!r:.80} is not a revoked subject", hint="rlm-mem token list shows all"
                )
            tokens.remove(found)
        return found

    def refuses(self, name: str) -> bool:
        """Whether tokens of this subject (``oauth:SUB``) are revoked here."""
        self._current()
        return name in self._subjects

    def records(self) -> list[TokenRecord]:
        """All tokens in order of creation, including expired and revoked ones."""
        return list(self._current().values())

    def state_of(self, record: TokenRecord) -> str:
        """The present state: ``active``, ``expired`` or ``revoked``."""
        return record.state(format_time(self._clock()))

    def in_force(self) -> bool:
        """Whether any token is active."""
        return any(self.state_of(one) == "active" for one in self.records())

    def find(self, token: str) -> TokenRecord | None:
        """The record of an active token; None for other texts."""
        parts = _TOKEN.match(token)
        record = self.get(parts[1]) if parts else None
        if record is None or not hmac.compare_digest(record.digest, _digest(token)):
            return None
        return record

    def get(self, identity: str) -> TokenRecord | None:
        """The record of an active token, by id."""
        record = self._current().get(identity)
        return record if record is not None and self.state_of(record) == "active" else None

    # --- the file -----------------------------------------------------------------------------------------

    def _current(self) -> dict[str, TokenRecord]:
        with self._guard:
            try:
                now = signature(self.path)
            except OSError as error:
                raise StorageError(
                    f"{self.path} cannot be read: {error.strerror}", hint="check its permissions"
                ) from None
            if now != self._seen or now is None:
                self._by_id = {one.id: one for one in ([] if now is None else self._read())}
                self._subjects = frozenset(one.name for one in self._by_id.values() if not one.digest)
                self._seen = now
            return self._by_id

    def _read(self) -> list[TokenRecord]:
        try:
            if os.name == "posix" and self.path.stat().st_mode & 0o022:
                raise StorageError(
                    f"{self.path} can be written by others, who could create tokens",
                    hint=f"chmod 600 {self.path}",
                )
            contents = msgspec.json.decode(self.path.read_bytes(), type=_Contents)
        except FileNotFoundError:
            return []
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(f"{self.path} cannot be read: {error.strerror}") from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise StorageError(
                f"{self.path} is damaged: {error}", hint="restore it from a backup, or create new tokens"
            ) from None
        if contents.format != _FORMAT:
            raise StorageError(
                f"{self.path} has the format {contents.format}, this version reads {_FORMAT}",
                hint="use the version that wrote it, or a newer one",
            )
        return contents.tokens

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[TokenRecord]]:
        """The tokens, under a lock between processes; they are written if the block ends without an error."""
        path = self.path.with_name(f".{self.path.name}.lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("ab")
        except OSError as error:
            raise StorageError(f"{path} cannot be created: {error.strerror}") from None
        with file:
            lock(file.fileno(), wait=True)
            tokens = self._read()
            yield tokens
            data = msgspec.json.format(msgspec.json.encode(_Contents(_FORMAT, tokens)), indent=1)
            write_atomic(self.path, data + b"\n", mode=0o600)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

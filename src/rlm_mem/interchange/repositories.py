"""Reads which git repository a folder is in, and which remote that has.

Only files are read and nothing is run: `git` need not be installed, and a repository's configuration has no effect.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from rlm_mem.record import FrozenRecord
from rlm_mem.text.patterns import late

_MAX_CONFIG = 1_000_000  # bytes of .git/config that are read
_MAX_POINTER = 4_096  # bytes of a file that names another folder
_SECTION = late(r'\[\s*remote\s+"([^"\n]{1,200})"\s*\]')
_URL = late(r"\s*url\s*=\s*(\S.{0,1000})")
_SCP = late(r"(?:[^@/\s]{1,300}@)?([^/\s:]{1,200}):(?!//|:)(.{1,800})")


class Repository(FrozenRecord, frozen=True):
    """A git repository.

    Attributes:
        root: the folder of its files, which of a work tree is its own.
        common: the folder with its settings, which work trees share.
    """

    root: Path
    common: Path

    def address(self) -> list[str]:
        """Return host, owner and name of its remote, in lower case; empty without a remote on another machine."""
        return _address(_remote_url(self.common / "config"))


def repository_of(folder: Path) -> Repository | None:
    """Return the repository that contains a folder, given by its resolved path; raises OSError if it cannot be read."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.exists():
            return Repository(place, _git_folder(place, git))
    return None


def _git_folder(root: Path, git: Path) -> Path:
    """Return the folder with the repository's settings, which for a work tree is elsewhere."""
    if git.is_dir():
        return git
    line = _beginning(git, _MAX_POINTER).strip()
    if not line.startswith("gitdir:"):
        return git
    place = (root / line.removeprefix("gitdir:").strip()).resolve()
    common = place / "commondir"
    return (place / _beginning(common, _MAX_POINTER).strip()).resolve() if common.is_file() else place


def _beginning(path: Path, size: int) -> str:
    """Return the first bytes of a file as text; the file may be of any size, since others may have written it."""
    with path.open("rb") as file:
        return file.read(size).decode("utf-8", "replace")


def _remote_url(config: Path) -> str:
    """Return the URL of `origin`, else of the first remote that has one; empty without any."""
    if not config.is_file():
        return ""
    text = _beginning(config, _MAX_CONFIG)
    found: dict[str, str] = {}
    section = None
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            header = _SECTION.match(line.strip())
            section = header.group(1) if header else None
        elif section is not None and (url := _URL.match(line)):
            found.setdefault(section, url.group(1).strip())
    return found.get("origin") or next(iter(found.values()), "")


def _address(url: str) -> list[str]:
    """Return host and path of a URL; empty for one on this machine."""
    host, path = "", ""
    if "://" in url:
        try:
            split = urlsplit(url)
            host, path = split.hostname or "", split.path
            # Refuses "user:pass/word@host", whose password would be taken for a part of the path.
            _ = split.port
        except ValueError:
            return []
        if split.scheme == "file":
            return []
    elif scp := _SCP.fullmatch(url):
        host, path = scp.groups()
        if len(host) == 1:  # C:\somewhere
            return []
    names = [name for name in path.lower().rstrip("/").removesuffix(".git").split("/") if name.strip(".")]
    return [host.lower(), *names] if host and names else []

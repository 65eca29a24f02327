"""The namespace of a project: from the remote of its repository, else from its path on this machine.

Only files are read and nothing is run: `git` need not be installed, and no configuration of a repository has effect.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from rlm_mem.record import FrozenRecord
from rlm_mem.text.patterns import late

#: Prefix of the namespaces of projects.
PROJECTS = "project/"

_MAX_CONFIG = 1_000_000  # bytes of .git/config that are read
_MAX_PART = 60  # characters of one part of a namespace
_MAX_PARTS = 6
_SECTION = late(r'\[\s*remote\s+"([^"\n]{1,200})"\s*\]')
_URL = late(r"\s*url\s*=\s*(\S.{0,1000})")
_SCP = late(r"(?:[^@/\s:]{1,100}@)?([^/\s:]{1,200}):(?!//)(.{1,800})")
_UNFIT = late(r"[^a-z0-9._@-]+")


class Project(FrozenRecord, frozen=True):
    """A project that sessions work on.

    Attributes:
        root: the folder of the repository, or the folder of the session where there is none.
        namespace: where its memories are kept.
        name: the last part of the namespace, for display.
    """

    root: Path
    namespace: str
    name: str


def project_of(folder: Path, home: Path | None = None) -> Project | None:
    """The project that a folder belongs to.

    A repository with a remote has the same namespace on every machine and in every clone; work trees share the
    namespace of their repository.

    Args:
        folder: where the session works.
        home: the user's home folder, which is not itself a project; None: that of the current user.

    Returns:
        the project; None for the home folder, the root of the disk, and folders that cannot be read.
    """
    try:
        start = folder.expanduser().resolve()
        own = (home or Path.home()).resolve()
        for place in (start, *start.parents):
            git = place / ".git"
            if git.exists():
                return _of_repository(place, git)
        if start in (own, Path(start.anchor)) or not start.is_dir():
            return None
    except (
        OSError,
        RuntimeError,
        ValueError,
    ):  # a loop of links, a NUL in a name: not a folder to remember for
        return None
    return _local(start)


def _of_repository(root: Path, git: Path) -> Project:
    common = _common(root, git)
    parts = _parts(_remote(common / "config"))
    if parts:
        namespace = PROJECTS + "/".join(parts)
        return Project(root, namespace, parts[-1])
    # A work tree without a remote belongs to the repository that it was created from.
    return _local(common.parent if common.name == ".git" else root, root)


def _common(root: Path, git: Path) -> Path:
    """The folder with the repository's settings; for a work tree it is elsewhere."""
    if git.is_dir():
        return git
    line = git.read_text(encoding="utf-8", errors="replace")[:4_096].strip()
    if not line.startswith("gitdir:"):
        return git
    place = (root / line.removeprefix("gitdir:").strip()).resolve()
    common = place / "commondir"
    if common.is_file():
        return (place / common.read_text(encoding="utf-8", errors="replace")[:4_096].strip()).resolve()
    return place


def _remote(config: Path) -> str:
    """The address of `origin`, else of the first remote that has one; empty without any."""
    if not config.is_file():
        return ""
    with config.open("rb") as file:
        text = file.read(_MAX_CONFIG).decode("utf-8", "replace")
    found: dict[str, str] = {}
    section = None
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            named = _SECTION.match(line.strip())
            section = named.group(1) if named else None
        elif section is not None and (url := _URL.match(line)):
            found.setdefault(section, url.group(1).strip())
    return found.get("origin") or next(iter(found.values()), "")


def _parts(url: str) -> list[str]:
    """Host, owner and name as parts of a namespace; empty for an address on this machine."""
    host, path = "", ""
    if "://" in url:
        try:
            split = urlsplit(url)
            host, path = split.hostname or "", split.path
        except ValueError:
            return []
        if split.scheme == "file":
            return []
    elif scp := _SCP.fullmatch(url):
        host, path = scp.groups()
        if len(host) == 1:  # C:\somewhere
            return []
    names = [name for name in path.lower().rstrip("/").removesuffix(".git").split("/") if name.strip(".")]
    if not host or not names:
        return []
    given = [host.lower(), *names]
    made = [_part(name) for name in given]
    if made != given or len(made) > _MAX_PARTS:
        # Two names could become the same after replacing characters: a digest distinguishes them.
        made = [*made[: _MAX_PARTS - 1], f"{made[-1][:40]}-{_digest('/'.join(given))}"]
    return made


def _local(folder: Path, root: Path | None = None) -> Project:
    name = _part(folder.name.lower())
    return Project(root or folder, f"{PROJECTS}local/{name}-{_digest(str(folder))}", name)


def _part(name: str) -> str:
    return _UNFIT.sub("-", name).lstrip("._@-")[:_MAX_PART].rstrip("-") or "x"


def _digest(text: str) -> str:
    from hashlib import sha256  # loads OpenSSL, and most projects have a remote

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]

"""The namespace of a project: from the remote of its repository, else from its path on this machine.

Only files are read and nothing is run: `git` need not be installed, and a repository's configuration has no effect.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from rlm_mem.record import FrozenRecord
from rlm_mem.text.patterns import late

#: Prefix of the namespaces of projects.
PROJECTS = "project/"

_MAX_CONFIG = 1_000_000  # bytes of .git/config that are read
_MAX_POINTER = 4_096  # bytes of a file that names another folder
_MAX_SLUG = 60  # characters of one part of a namespace
_MAX_PARTS = 6
_SECTION = late(r'\[\s*remote\s+"([^"\n]{1,200})"\s*\]')
_URL = late(r"\s*url\s*=\s*(\S.{0,1000})")
_SCP = late(r"(?:[^@/\s:]{1,100}@)?([^/\s:]{1,200}):(?!//)(.{1,800})")
_NOT_ALLOWED = late(r"[^a-z0-9._@-]+")


class Project(FrozenRecord, frozen=True):
    """A project that sessions work on.

    Attributes:
        root: the folder of the repository, or the folder of the session if there is none.
        namespace: where its memories are kept.
        name: the last part of the namespace, for display.
    """

    root: Path
    namespace: str
    name: str


def project_of(folder: Path = Path(), home: Path | None = None) -> Project | None:
    """Return the project that a folder belongs to.

    A repository with a remote has the same namespace on every machine and in every clone; work trees share the
    namespace of their repository.

    Args:
        folder: where the session works; by default the working folder.
        home: the user's home folder, which is not itself a project; None: that of the current user.

    Returns:
        The project; None for the home folder, the root of the disk, and folders that cannot be read.
    """
    try:
        start = folder.expanduser().resolve()
        home_folder = (home or Path.home()).resolve()
        for place in (start, *start.parents):
            git = place / ".git"
            if git.exists():
                return _repository_project(place, git)
        if start in (home_folder, Path(start.anchor)) or not start.is_dir():
            return None
    except (OSError, RuntimeError, ValueError):  # such as a loop of links, or a NUL in a name
        return None
    return _local_project(start)


def _repository_project(root: Path, git: Path) -> Project:
    common = _git_folder(root, git)
    parts = _namespace_parts(_remote_url(common / "config"))
    if parts:
        namespace = PROJECTS + "/".join(parts)
        return Project(root, namespace, parts[-1])
    # A work tree without a remote belongs to the repository that it was created from.
    return _local_project(common.parent if common.name == ".git" else root, root)


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


def _namespace_parts(url: str) -> list[str]:
    """Return host, owner and name as parts of a namespace; empty for a URL on this machine."""
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
    parts = [host.lower(), *names]
    slugs = [_slug(name) for name in parts]
    if slugs != parts or len(slugs) > _MAX_PARTS:
        # Two names could become the same after replacing characters: a digest distinguishes them.
        slugs = [*slugs[: _MAX_PARTS - 1], f"{slugs[-1][:40]}-{_digest('/'.join(parts))}"]
    return slugs


def _local_project(folder: Path, root: Path | None = None) -> Project:
    name = _slug(folder.name.lower())
    return Project(root or folder, f"{PROJECTS}local/{name}-{_digest(str(folder))}", name)


def _slug(name: str) -> str:
    return _NOT_ALLOWED.sub("-", name).lstrip("._@-")[:_MAX_SLUG].rstrip("-") or "x"


def _digest(text: str) -> str:
    from hashlib import sha256  # loads OpenSSL, and most projects have a remote

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]

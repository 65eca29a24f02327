"""The namespace of a project: from the remote of its repository, else from its path on this machine."""

from __future__ import annotations

from pathlib import Path

from rlm_mem.interchange.repositories import Repository, repository_of
from rlm_mem.record import FrozenRecord
from rlm_mem.text.patterns import late

#: Prefix of the namespaces of projects.
PROJECTS = "project/"

_MAX_SLUG = 60  # characters of one part of a namespace
_MAX_PARTS = 6
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
        repository = repository_of(start)
        if repository is not None:
            return _repository_project(repository)
        if start in (home_folder, Path(start.anchor)) or not start.is_dir():
            return None
    except (OSError, RuntimeError, ValueError):  # such as a loop of links, or a NUL in a name
        return None
    return _local_project(start)


def _repository_project(repository: Repository) -> Project:
    root, common, address = repository.root, repository.common, repository.address()
    if address:
        parts = _namespace_parts(address)
        return Project(root, PROJECTS + "/".join(parts), parts[-1])
    # A work tree without a remote belongs to the repository that it was created from.
    return _local_project(common.parent if common.name == ".git" else root, root)


def _namespace_parts(parts: list[str]) -> list[str]:
    """Return the address of a remote as parts of a namespace."""
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

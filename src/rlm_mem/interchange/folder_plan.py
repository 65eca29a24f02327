"""Plans a folder sync: derives from paths and contents how each file changed; does not access the store."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from rlm_mem.interchange.folder_record import FileEntry

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk

_FEW_PIECES = 4

_MIN_SHARED = 0.5
"""Share of pieces, or of sentences, that a new and a removed file must have in common to count as one renamed file."""
_ENDS = re.compile(r"(?<=[.!?])\s+|\n")
_MIN_WORDS = 3


@dataclass(frozen=True)
class FileChange:
    """One change of the memory that a file requires.

    Attributes:
        path: the current path of the file; None: it was removed.
        former: its entry in the record, under this or another path; None: it is new.
        digest: of its current bytes; empty if it was removed.
    """

    path: str | None
    former: FileEntry | None
    digest: str = ""

    @property
    def kind(self) -> str:
        """``added``, ``changed``, ``renamed``, ``restored`` or ``archived``."""
        if self.path is None:
            return "archived"
        if self.former is None:
            return "added"
        if self.former.archived:
            return "restored"
        return "changed" if self.former.path == self.path else "renamed"

    @property
    def paths(self) -> list[str]:
        """The paths that the change affects."""
        names = [self.path, self.former.path if self.former else None]
        return [name for name in dict.fromkeys(names) if name is not None]


def plan(
    live: Mapping[str, FileEntry],
    archived: Iterable[FileEntry],
    present: Mapping[str, str],
    lost: Collection[str],
) -> list[FileChange]:
    """Return the changes for all files, in the order of their paths.

    Content keeps its chunks when it is moved. It is searched under its own path, then under other paths (renamed,
    also in a cycle or onto another file), then in the archive. Otherwise a file under a known path counts as
    changed, and one under a new path as new.

    Args:
        live: recorded files, by path.
        archived: files that were removed, in order of time for each path.
        present: digests of the existing files, by path.
        lost: paths of ``live`` whose file no longer exists.
    """
    free: dict[str, list[FileEntry]] = defaultdict(list)  # known contents that are no longer at their paths
    for path, entry in live.items():
        if path in lost or (path in present and present[path] != entry.digest):
            free[entry.digest].append(entry)
    away: dict[str, list[FileEntry]] = defaultdict(list)
    last: dict[str, FileEntry] = {}
    for entry in archived:
        away[entry.digest].append(entry)
        last[entry.path] = entry
    open_paths = [path for path in sorted(present) if path not in live or live[path].digest != present[path]]
    chosen: dict[str, FileEntry] = {}
    used: set[int] = set()
    for known in (free, away):
        for path in open_paths:
            digest = present[path]
            if path in chosen or digest not in known:
                continue
            if known is away and path in live and id(live[path]) not in used:
                continue  # the file existed all the time, so it was changed
            found = _nearest(path, [one for one in known[digest] if id(one) not in used], lost)
            if found is not None:
                chosen[path] = found
                used.add(id(found))
    changes: list[FileChange] = []
    for path in open_paths:
        former = chosen.get(path)
        if former is None:
            recorded = live.get(path)
            if recorded is None:
                recorded = last.get(path)
            if recorded is not None and id(recorded) not in used:
                former = recorded
                used.add(id(recorded))
        changes.append(FileChange(path, former, present[path]))
    removed = [entry for entries in free.values() for entry in entries if id(entry) not in used]
    changes += [FileChange(None, entry) for entry in sorted(removed, key=lambda entry: entry.path)]
    return changes


def number_emptied(
    changes: Sequence[FileChange], live: Mapping[str, FileEntry], listed: Collection[str]
) -> int:
    """Return the number of recorded files if all of them are to be archived and none exists any more, otherwise 0."""
    gone = {one.former.path for one in changes if one.path is None and one.former is not None}
    return len(gone) if gone == live.keys() and gone.isdisjoint(listed) else 0


def _nearest(path: str, candidates: list[FileEntry], lost: Collection[str]) -> FileEntry | None:
    """Return, of files with the same content, the one with the best matching name; of equal ones, a removed one."""
    name = PurePosixPath(path).name

    def fit(entry: FileEntry) -> tuple[bool, bool, bool]:
        return entry.path == path, PurePosixPath(entry.path).name == name, entry.path in lost

    return max(candidates, key=fit, default=None)


def alike(added: Mapping[str, Collection[str]], removed: Sequence[Collection[str]]) -> dict[str, int]:
    """Return, for new paths, the number of the removed file that each continues: half of their parts are the same.

    Args:
        added: the parts of each new file, by path: digests of its pieces, or sentences.
        removed: the parts of each removed file whose content is at no other path.
    """
    owners: dict[str, list[int]] = defaultdict(list)
    for number, parts in enumerate(removed):
        for part in set(parts):
            owners[part].append(number)
    scored: list[tuple[float, str, int]] = []
    for path, parts in added.items():
        own = set(parts)
        shared = Counter(number for part in own for number in owners.get(part, ())[:50])
        for number, count in shared.most_common(3):
            share = count / max(len(own), len(set(removed[number])))
            if share >= _MIN_SHARED:
                scored.append((-share, path, number))
    pairs: dict[str, int] = {}
    taken: set[int] = set()
    for _, path, number in sorted(scored):
        if path not in pairs and number not in taken:
            pairs[path] = number
            taken.add(number)
    return pairs


def sentences(texts: Iterable[str]) -> list[str]:
    """Return the sentences and lines of texts that tell them from others: no headings, and three words or more."""
    found = (one.strip() for text in texts for one in _ENDS.split(text))
    return [one for one in found if not one.startswith("#") and len(one.split()) >= _MIN_WORDS]


class NewFile(NamedTuple):
    """A file without a record: the digests of its pieces, and their texts."""

    digests: list[str]
    texts: list[str]


def with_renames(
    changes: Sequence[FileChange],
    added: Mapping[str, NewFile],
    chunks: Callable[[list[str]], Mapping[str, Chunk]],
) -> list[FileChange]:
    """Return the changes with each new file merged with the removed file that it continues, renamed and edited.

    Args:
        added: the new files, by path.
        chunks: returns chunks by their ids.
    """
    removed = [one.former for one in changes if one.path is None and one.former is not None]
    digests = {path: file.digests for path, file in added.items()}
    pairs = alike(digests, [[piece.digest for piece in one.pieces] for one in removed])
    # An edit of a short file may have changed each of its pieces, so the sentences of the others are compared.
    rest = [number for number in range(len(removed)) if number not in set(pairs.values())]
    short = [number for number in rest if len(removed[number].pieces) <= _FEW_PIECES]
    told = {
        path: sentences(file.texts)
        for path, file in added.items()
        if path not in pairs and len(file.digests) <= _FEW_PIECES
    }
    ids = [[piece.id for piece in removed[number].pieces] for number in short]
    known = chunks([one for some in ids for one in some])
    said = [sentences(known[one].content for one in some if one in known) for some in ids]
    pairs |= {path: short[number] for path, number in alike(told, said).items()}
    former = {path: removed[number] for path, number in pairs.items()}
    joined = {id(entry) for entry in former.values()}
    return [
        replace(one, former=former[one.path]) if one.former is None and one.path in former else one
        for one in changes
        if not (one.path is None and id(one.former) in joined)
    ]


def groups(changes: Sequence[FileChange]) -> list[list[FileChange]]:
    """Group changes that share a path and must be applied together: a cycle of names, a file moved onto another."""
    leader = list(range(len(changes)))

    def first(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    owner: dict[str, int] = {}
    for number, change in enumerate(changes):
        for path in change.paths:
            one, other = sorted((first(number), first(owner.setdefault(path, number))))
            leader[other] = one
    found: dict[int, list[FileChange]] = defaultdict(list)
    for number, change in enumerate(changes):
        found[first(number)].append(change)
    return list(found.values())


@dataclass(frozen=True)
class Replacement:
    """How the pieces of a file's former state are kept, replaced or removed.

    Attributes:
        kept: position of the former piece by the position of the new one with the same text.
        replaced: positions of former pieces by the position of the new piece that replaces them.
        removed: former pieces without a replacement.
    """

    kept: dict[int, int]
    replaced: dict[int, list[int]]
    removed: list[int]


def align(former: Sequence[str], present: Sequence[str]) -> Replacement:
    """Compare the pieces of two states of a file by their digests, each of which occurs once in a state.

    Pieces with the same text are kept at any position. Between those that kept their order are gaps: the former
    pieces in a gap are replaced, in order, by its present ones. Takes O(n log n) time.
    """
    places = {digest: place for place, digest in enumerate(former)}
    kept = {place: places[digest] for place, digest in enumerate(present) if digest in places}
    anchors = _longest_increasing([(place, kept[place]) for place in kept])
    new_anchors, old_anchors = [new for new, _ in anchors], [old for _, old in anchors]
    still = set(kept.values())
    new_by_gap: dict[int, list[int]] = defaultdict(list)
    for place in range(len(present)):
        if place not in kept:
            new_by_gap[bisect_right(new_anchors, place)].append(place)
    old_by_gap: dict[int, list[int]] = defaultdict(list)
    for place in range(len(former)):
        if place not in still:
            old_by_gap[bisect_right(old_anchors, place)].append(place)
    replaced: dict[int, list[int]] = defaultdict(list)
    removed: list[int] = []
    for gap, old_places in old_by_gap.items():
        new_places = new_by_gap.get(gap)
        if not new_places:
            removed += old_places
            continue
        for number, old in enumerate(old_places):
            replaced[new_places[number * len(new_places) // len(old_places)]].append(old)
    return Replacement(kept, dict(replaced), removed)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs, sorted by their first members, whose second members also increase."""
    tails: list[int] = []  # for each length, the least second member that ends a run; ``ends``: its pair
    ends: list[int] = []
    before: list[int] = []
    for number, (_, second) in enumerate(pairs):
        length = bisect_left(tails, second)
        before.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(second)
            ends.append(number)
        else:
            tails[length], ends[length] = second, number
    run: list[tuple[int, int]] = []
    place = ends[-1] if ends else -1
    while place >= 0:
        run.append(pairs[place])
        place = before[place]
    return run[::-1]

"""The codes of integrity findings, each with its meaning and its remedy."""

from __future__ import annotations

from rlm_mem.record import FrozenRecord

#: Every code with its meaning, and the action of `repair`.
CODES: dict[str, tuple[str, str]] = {
    "unreadable-file": (
        "not valid JSON, or a required field is missing or malformed",
        "left in place for a person: correct it in an editor, or remove it",
    ),
    "note-among-chunks": (
        "a Markdown file in the folder of the chunks, which nothing reads",
        "left in place for a person: rlm-mem import FILE stores it, then remove it",
    ),
    "unreadable-with-version": (
        "the file does not validate, but a former version of it does",
        "moves the damaged file to archive/damaged/ and brings the newest former version back",
    ),
    "conflict-of-counts": (
        "git left a conflict in a chunk whose sides differ in revision, access counts and times of change alone",
        "takes the later of each",
    ),
    "newer-version": (
        "a later version of this program wrote it in a form that this one does not know",
        "left as it is: upgrade rlm-mem",
    ),
    "outdated-for-git": (
        "a .gitignore or .gitattributes of the memory is missing, damaged, or of an earlier version: git takes files "
        "of one machine, such as tokens, or merges what it should not",
        "writes it as new memories have it, and keeps your lines after it; git rm --cached FILE takes a file out",
    ),
    "misnamed-file": (
        "the file name and the id inside differ, or the file is not in a folder of a month",
        "renames or moves the file, if that name is free or its file holds another chunk; writes the id of the name "
        "into it if other chunks or former versions know that one",
    ),
    "duplicate-id": (
        "two files hold the same chunk",
        "gives the text of the other file an id of its own, that of its name if the memory knows it, so that both are "
        "there; a file that says the same goes to archive/damaged/",
    ),
    "archived-change": (
        "an archived chunk was changed since: git merged the change of one side with the deletion of the other, or "
        "left both files, or it was edited by hand",
        "keeps the change as the active chunk; delete it again if it should stay in the archive",
    ),
    "content-hash": (
        "the content was edited: its stored hash is another",
        "writes the right hash as a new revision",
    ),
    "token-count": (
        "the stored token count is not that of the content",
        "writes the right count as a new revision",
    ),
    "ends-before-start": (
        "valid_from is after valid_to: it never held",
        "left for a person: correct one of the two",
    ),
    "unknown-type": (
        "the chunk type is neither built in nor registered",
        "left: register the type or change it",
    ),
    "unknown-link-type": (
        "the link type is neither built in nor registered",
        "left: register the type or change it",
    ),
    "dangling-link": ("the link's target does not exist", "removes the link (the former version is kept)"),
    "noise-links": (
        "automatic links of earlier rules that today's rules would not make",
        "removes them (the former version is kept)",
    ),
    "dangling-superseded": ("superseded_by names a chunk that does not exist", "left for a person"),
    "one-sided-replacement": (
        "one chunk replaces another, which only one of the two records",
        "records it in the other one, too (the former version is kept)",
    ),
    "replaced-twice": (
        "a chunk has a link supersedes to one that names another successor",
        "left for a person: remove the link (rlm-mem link remove NEWER OLDER --type supersedes), and let one of "
        "the two successors replace the other if only one of them holds (rlm-mem chunk supersede OLD NEW)",
    ),
    "self-link": (
        "the chunk links to itself, or names itself as its successor",
        "removes the link (the former version is kept)",
    ),
    "circular-links": ("links of an ordered type form a cycle", "left for a person"),
    "namespace-crossing-link": (
        "the link leads into another namespace",
        "removes the link (the former version is kept)",
    ),
    "index-missing-file": ("the index lists a chunk whose file is gone", "drops the index entry"),
    "orphaned-file": ("a chunk file that is not in the index", "adds it to the index"),
    "index-outdated": (
        "the index has another state of the chunk than its file",
        "reads the file into the index",
    ),
    "index-links": (
        "incoming or outgoing links in the index are not those of the file",
        "rebuilds the index",
    ),
    "index-terms": ("search terms of the chunk are missing from the index", "rebuilds the index"),
    "index-damaged": ("SQLite reports damage in the index", "rebuilds the index"),
    "leftover-file": ("an unfinished file of a killed process", "removes it (it was never acknowledged)"),
    "leftover-backup": (
        "a folder with links to the files of the memory, left by a killed backup",
        "removes it, as the next backup does",
    ),
    "unreadable-row": ("the text of a chunk in the database does not validate", "left in place for a person"),
    "unreadable-row-with-version": (
        "the text of a chunk in the database does not validate, but a former version of it does",
        "keeps the damaged text as a file archive/damaged/…, and brings the newest former version back",
    ),
    "index-row": ("columns of the chunk's row are not those of its text", "rebuilds the index"),
    "index-counts": ("a count kept in the database differs from a recount", "rebuilds the index"),
    "orphaned-row": ("rows of a table that belong to no chunk", "removes them"),
    "tiered-memory": ("a tiered memory breaks a rule of its schema", "left in place for a person"),
    "tiered-conflict": (
        "git merged a file of several tiered memories, and left its sides in conflict",
        "keeps the memories of both sides; one that both changed stays in conflict, for a person",
    ),
    "tiered-undated": (
        "a tiered memory has no created_at: the time of its file is used",
        "left: write one into its front matter",
    ),
    "unreadable-case": (
        "a case of the review queue does not validate",
        "left in place for a person, who may correct it or remove the file: it may have a decision",
    ),
    "other-encoding": (
        "a record or log of the brain begins with a byte order mark, or is UTF-16: an editor saved it so",
        "writes it as UTF-8 without a mark",
    ),
    "conflict-of-lines": (
        "git left lines of a log or of a recorded run in conflict",
        "keeps the lines of both sides",
    ),
    "unreadable-lines": (
        "a log or a recorded run has bytes of no text, or is a pointer of Git LFS",
        "left as it is: its other lines are read; git lfs pull fetches a file behind a pointer",
    ),
    "not-fetched": (
        "a record of the brain is only a pointer of Git LFS",
        "left as it is: git lfs pull fetches the file",
    ),
    "folder-conflict": (
        "git left the record of a synced folder in conflict",
        "left to the next sync of the folder, which unites what both sides recorded",
    ),
    "unreadable-folder": (
        "a part of the record of a synced folder is no valid JSON, and the folder is not synced until it is gone",
        "moves it to archive/damaged/; the next sync finds the chunks again by the paths of their files",
    ),
    "unreadable-change": (
        "the record of a change is no valid JSON, so that the change cannot be undone",
        "moves it to archive/damaged/",
    ),
    "unreadable-state": (
        "the state of a session (working state, persona, or how far it was captured) is no valid JSON",
        "moves it to archive/damaged/; the session begins anew",
    ),
    "erasure-cut-off": ("an erasure of chunks was cut off: texts that quote them may remain", "finishes it"),
    "erasure-to-repeat": (
        "an erasure of a person, a source or a namespace was cut off: a part of it may remain",
        "left for a person: erase the same again (rlm-mem erase), which removes the mark",
    ),
    "unreadable-erasure": (
        "the mark of an erasure that was cut off is damaged: what it was to erase may remain",
        "removes what still names the chunks in it, and the mark, once these are erased (rlm-mem delete ID "
        "--permanent); moves one that names none to archive/damaged/: erase the same again if you know what it was",
    ),
    "damaged-file": (
        "parts of a file of the brain are missing in the database, or too many",
        "left: bring it back from a backup or an export",
    ),
    "change-interrupted": ("a change of tiered memories was begun and not finished", "finishes the change"),
    "unreadable-version": ("a kept former version does not validate", "left in place for a person"),
}


class Finding(FrozenRecord, frozen=True):
    """One defect that a check reports.

    Attributes:
        message: one sentence with the particulars.
        file: path relative to the store (of a tiered memory: to the brain), or None for the index.
        chunk_id: the chunk concerned, if it is known.
        target_id: the other end, for links.
    """

    code: str
    message: str
    file: str | None = None
    chunk_id: str | None = None
    target_id: str | None = None
    link_type: str | None = None

    @property
    def meaning(self) -> str:
        """The meaning of the code."""
        return CODES[self.code][0]

    @property
    def remedy(self) -> str:
        """The action that `repair` takes."""
        return CODES[self.code][1]

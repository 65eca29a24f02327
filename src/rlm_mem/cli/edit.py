"""Changes of chunks: update, edit, delete, restore, supersede, quarantine, release, undo, link, unlink."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlm_mem.chunk import is_chunk_id
from rlm_mem.cli import backup, options, sources
from rlm_mem.cli.call import Call, other_places
from rlm_mem.cli.ids import full_id, full_ids, no_chunk, quarantined_id
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.terminal import amount, day, note, one_line, print_json, print_text
from rlm_mem.config import Config, SecretAction
from rlm_mem.errors import InputError, NotFoundError, RlmMemError
from rlm_mem.own_process import environment_of_programs

if TYPE_CHECKING:
    import rlm_mem
    from rlm_mem.text.secrets import Screened

Source = Annotated[str, argument("FROM", "The chunk that the link starts from.")]
Target = Annotated[str, argument("TO", "The chunk that it points to.")]

_CHANGE = re.compile(r"\d{20}-[0-9a-f]{16}")  # the id of a change
_SHOWN_TEXTS = 3  # chunks of an undone change of which the text is shown


def link(
    call: Call,
    source_id: Source,
    target_id: Target,
    kind: Annotated[
        str,
        argument("TYPE", "supports, contradicts, or another type of link; an unknown one prints the list."),
    ],
    strength: Annotated[float, option("--strength", "0..1", "Strength of the link.")] = 0.5,
    reason: Annotated[str | None, option("--reason", "TEXT", "Why they are linked.")] = None,
) -> None:
    """Link two chunks: rlm-mem link add FROM TO supports."""
    with call.open() as memory:
        source_id, target_id = full_ids(memory, [source_id, target_id])
        memory.link(source_id, target_id, kind, strength, reason)
    call.report(
        {
            "source_id": source_id,
            "target_id": target_id,
            "type": kind,
            "strength": strength,
            "reasoning": reason,
        },
        f"{source_id} {kind} {target_id}",
    )


def supersede(
    call: Call,
    old_id: Annotated[str, argument("OLD", "The chunk to replace.")],
    new_id: Annotated[str, argument("NEW", "The chunk that replaces it.")],
    reason: Annotated[str | None, option("--reason", "TEXT", "Why it was replaced.")] = None,
    force: Annotated[bool, flag("--force", "Even if NEW is older than OLD.")] = False,
) -> None:
    """Let one chunk replace another, which is kept: rlm-mem chunk supersede OLD NEW; rlm-mem undo undoes it."""
    if " " in new_id.strip():
        raise InputError(
            f"NEW is the id of a chunk, not a text: {new_id!r:.60}",
            hint=f'rlm-mem remember "TEXT" --replaces {old_id} remembers a text that replaces it',
        )
    with call.open() as memory:
        old_id, new_id = full_ids(memory, [old_id, new_id])
        changed = memory.supersede(old_id, new_id, reason, force=force)
    call.report(
        changed.to_dict(), f"{new_id} replaces {old_id}, which was valid until {changed.metadata.valid_to}"
    )


def quarantine(
    call: Call,
    chunk_id: Annotated[str, argument("ID", "The chunk to hide.")],
    reason: Annotated[str | None, option("--reason", "TEXT", "Why it is hidden.")] = None,
) -> None:
    """Hide a chunk from all searches, recalls and listings; rlm-mem review list shows it, rlm-mem undo undoes it."""
    with call.open() as memory:
        changed = memory.quarantine(full_ids(memory, [chunk_id])[0], reason)
    call.report(
        changed.to_dict(), f"{changed.id} is in quarantine; rlm-mem chunk release {changed.id} releases it"
    )


def release(
    call: Call,
    chunk_id: Annotated[str, argument("ID", "The chunk to release.")],
    trust: Annotated[
        str | None, option("--trust", "LEVEL", "Its new trust: untrusted, ordinary or trusted.")
    ] = None,
) -> None:
    """Release a chunk from quarantine, with its former trust or that of --trust."""
    with call.open() as memory:
        changed = memory.release(quarantined_id(memory, chunk_id), trust)
    call.report(changed.to_dict(), f"{changed.id} is released: {changed.metadata.trust}")


def unlink(
    call: Call,
    source_id: Source,
    target_id: Target,
    kind: Annotated[
        str | None, option("--type", "TYPE", "Only links of this type. Default: all of them.")
    ] = None,
) -> None:
    """Remove the links from one chunk to another."""
    with call.open() as memory:
        source_id, target_id = full_ids(memory, [source_id, target_id])
        removed = memory.unlink(source_id, target_id, kind)
    if not removed:
        raise NotFoundError(
            f"there is no such link from {source_id} to {target_id}",
            hint=f"rlm-mem link list {source_id} shows them",
        )
    call.report({"removed": removed}, f"removed {amount(removed, 'link')}")


def update(
    call: Call,
    chunk_id: options.ChunkId,
    content: Annotated[str | None, option("--content", "TEXT", "The new content; - reads stdin.")] = None,
    tags: Annotated[
        list[str] | None, option("--tag -t", "TAG", "The new tags, replacing the current ones; repeatable.")
    ] = None,
    no_tags: Annotated[bool, flag("--no-tags", "Remove every tag.")] = False,
    kind: options.Type = None,
    confidence: options.Confidence = None,
    revision: Annotated[
        int | None, option("--expect", "REVISION", "Refuse if it was changed since this revision.")
    ] = None,
    secrets: options.Secrets = None,
) -> None:
    """Change a chunk; its former version is kept."""
    if tags and no_tags:
        raise InputError("--tag and --no-tags contradict each other", hint="give one of them")
    if content == "-":
        content = sources.piped(Config.load(call.place).store.max_content_bytes) or ""
    given = {
        "content": content,
        "tags": [] if no_tags else tags or None,
        "chunk_type": kind,
        "confidence": confidence,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise InputError("nothing to change", hint="give --content, --tag, --no-tags, --type or --confidence")
    _update(call, chunk_id, changes, revision, secrets)


def edit(call: Call, chunk_id: options.ChunkId) -> None:
    """Edit the content of a chunk in your editor (VISUAL or EDITOR)."""
    with call.open() as memory:
        chunk_id = full_id(memory, chunk_id)
        chunk = memory.get(chunk_id)
        if chunk is None:
            raise no_chunk(memory, chunk_id)
    folder = Path(tempfile.mkdtemp(prefix="rlm-mem-"))
    path = folder / "chunk.md"
    try:
        changed = _edit_in_editor(path, chunk.content)
        if changed == chunk.content:
            note("nothing changed")
        else:
            _update(call, chunk_id, {"content": changed}, chunk.revision)
    except BaseException:  # Ctrl-C, too
        if path.exists() and path.read_bytes() not in (b"", chunk.content.encode("utf-8")):
            note(f"your text is kept in {path}")
        else:
            shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)


def _update(
    call: Call,
    chunk_id: str,
    changes: dict[str, Any],
    revision: int | None,
    secrets: SecretAction | None = None,
) -> None:
    found: list[Screened] = []
    with call.open() as memory:
        chunk_id = full_id(memory, chunk_id)
        changed = memory.update(
            chunk_id, expected_revision=revision, secrets=secrets, on_secret=found.append, **changes
        )
        if changed is None:
            raise no_chunk(memory, chunk_id)
    if not call.printed_json(changed.to_dict()):
        print_text(f"{chunk_id} is at revision {changed.revision}")
        if found:
            print_text(str(found[0].report()), "yellow")


def _edit_in_editor(path: Path, content: str) -> str:
    """Open the content in the editor, as this new file, and return the result."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise InputError("no editor is set", hint="set EDITOR, or use rlm-mem chunk update ID --content TEXT")
    path.write_bytes(content.encode("utf-8"))  # not as text, which would change the line ends
    try:
        code = subprocess.run(
            [*shlex.split(editor), str(path)], env=environment_of_programs(), check=False
        ).returncode
    except OSError as error:
        raise InputError(f"the editor {editor!r} cannot be started: {error.strerror}") from None
    if code:
        raise RlmMemError(f"the editor ended with {code}; nothing was changed")
    try:
        after = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise InputError("the editor removed the file; nothing was changed") from None
    except UnicodeDecodeError:
        raise InputError("the editor saved text that is not in UTF-8", hint="save it as UTF-8") from None
    # Editors add a newline at the end of the file, which is not a change.
    return after if content.endswith("\n") else after.removesuffix("\n").removesuffix("\r")


def delete(
    call: Call,
    chunk_ids: options.ChunkIds,
    permanent: Annotated[
        bool, flag("--permanent", "Erase them, and what quotes or names them; this cannot be undone.")
    ] = False,
    yes: Annotated[bool, flag("--yes -y", "Do not ask before --permanent.")] = False,
) -> None:
    """Delete chunks; rlm-mem chunk restore restores them unless --permanent is given."""
    if permanent and not yes:
        if not sys.stdin.isatty():
            raise InputError("--permanent cannot be undone", hint="add --yes to confirm it")
        typer.confirm(f"Permanently remove {amount(len(chunk_ids), 'chunk')}?", abort=True, err=True)
    remaining: list[str] = []
    with call.open() as memory:
        if permanent:
            from rlm_mem.store.core.erasing import finish_erasure

            finish_erasure(memory.store)  # of a command that was killed: its chunks may not be found any more
        ids = list(dict.fromkeys(full_ids(memory, chunk_ids)))
        if permanent:
            for chunk_id in ids:
                memory.continuum.refuse_deletion(chunk_id)
            made = memory.erase(chunk_ids=ids, dry_run=False)
            done = {chunk_id: chunk_id in made.chunk_ids for chunk_id in ids}
            remaining = made.remaining if made.chunk_ids else []
        else:
            done = {chunk_id: memory.delete(chunk_id) for chunk_id in ids}
        errors = [no_chunk(memory, chunk_id) for chunk_id, worked in done.items() if not worked]
    _report(
        done, "permanently deleted" if permanent else "deleted", "deleted", call.json,
        errors=errors, remaining=remaining,
    )  # fmt: skip


def archive(
    call: Call,
    conversation: Annotated[
        str | None, option("--conversation -c", "ID", "The memories of this conversation.")
    ] = None,
    tags: Annotated[
        list[str] | None, option("--tag -t", "TAG", "Those with this tag; repeatable: with all.")
    ] = None,
    source: Annotated[
        str | None, option("--source", "SOURCE", "Those from this file, folder or conversation, as in erase.")
    ] = None,
    restore: Annotated[bool, flag("--restore", "Restore them from the archive.")] = False,
    apply: Annotated[bool, flag("--apply", "Do it. Default: only show what would be archived.")] = False,
) -> None:
    """Archive all memories of a conversation, with tags or from a source, or restore them; rlm-mem undo undoes it."""
    with call.open() as memory:
        ids = memory.archive(
            conversation_id=conversation, tags=tags, source=source, restore=restore, dry_run=not apply
        )
        found = (
            {}
            if apply or call.json
            else memory.store.backend.chunks(memory.store.namespace, ids[:_SHOWN_TEXTS], status=None)
        )
    did = "restored" if restore else "archived"

    def show() -> None:
        print_text(f"{did if apply else f'would be {did}'}: {amount(len(ids), 'chunk')}")
        for one in ids[:_SHOWN_TEXTS]:
            if one in found:
                print_text(f"{one}  {one_line(found[one].content, 100)}", "dim", indent=2)
        if found:
            _print_rest(ids, 2)
        if ids and not apply:
            print_text("add --apply to do it")

    call.report({"dry_run": not apply, did: ids}, show)


def restore(
    call: Call,
    ids_or_file: Annotated[list[str], argument("ID... | FILE", "Ids of chunks, or one backup file.")],
    replace: Annotated[
        bool, flag("--replace", "From a backup: replace an existing memory, which is set aside.")
    ] = False,
) -> None:
    """Restore deleted chunks (rlm-mem list --archived lists them), or a whole memory from a backup."""
    first = Path(ids_or_file[0])
    if (
        len(ids_or_file) == 1
        and not is_chunk_id(ids_or_file[0])
        and (first.suffix or sources.is_there(ids_or_file[0]))
    ):
        backup.restore(call, first, replace=replace)
    else:
        restore_chunks(call, ids_or_file)


def restore_chunks(call: Call, chunk_ids: options.ChunkIds) -> None:
    """Restore deleted chunks; rlm-mem list --archived lists them."""
    with call.open() as memory:
        ids = dict.fromkeys(full_ids(memory, chunk_ids))
        found = {chunk_id: memory.restore(chunk_id) for chunk_id in ids}
        hidden = [one for one in found.values() if one is not None and not memory.store.exists(one.id)]
    done = {chunk_id: chunk is not None for chunk_id, chunk in found.items()}
    _report(done, "restored", "restored", call.json, missing="not in the archive")
    for chunk in () if call.json else hidden:
        if chunk.metadata.trust == "quarantined":
            why = f"it is in quarantine; rlm-mem chunk release {chunk.id} releases it"
        else:
            why = f"it expired on {day(chunk.metadata.expires_at)}"
        print_text(f"{chunk.id} stays hidden: {why}", "yellow")


def undo(
    call: Call,
    what: Annotated[str | None, argument("[ID]", "A chunk, or a change; by default the last change.")] = None,
    revision: Annotated[int | None, option("--to", "REVISION", "Of a chunk: restore this revision.")] = None,
) -> None:
    """Undo the last change that was made in this clone of the brain, or the last change of one chunk."""
    if what is None or _CHANGE.fullmatch(what):
        if revision is not None:
            raise InputError("--to needs a chunk", hint="rlm-mem undo ID --to REVISION")
        with call.open() as memory:
            undone = memory.undo(change=what)
            if undone is None:
                hint = "; ".join(filter(None, ["see rlm-mem store events", other_places(memory)]))
                raise NotFoundError(f"there is nothing to undo in {memory.store.namespace}", hint=hint)
            texts = [] if call.json else _texts(memory, undone.chunk_ids[:_SHOWN_TEXTS], undone.ops)
        if not call.printed_json(asdict(undone)):
            print_text(str(undone))
            for line in texts:
                print_text(line, "dim", indent=6)
            _print_rest(undone.chunk_ids, 6)
            note(f"to redo it: {call.undo_command(undone.undo)}")
        return
    with call.open() as memory:
        try:
            chunk_id = full_id(memory, what)
        except NotFoundError as error:
            raise NotFoundError(
                error.message.replace("no chunk ", "no chunk or change "), hint=error.hint
            ) from None
        former = [one.revision for one in memory.history(chunk_id) if not one.current]
        chunk = memory.undo(chunk_id, to_revision=revision)
        if chunk is None and memory.store.damage(chunk_id) is not None:
            raise no_chunk(memory, chunk_id)
    if chunk is None:
        raise NotFoundError(
            f"there is nothing to undo for {chunk_id}"
            if revision is None
            else f"{chunk_id} cannot go back to revision {revision}",
            hint=f"rlm-mem chunk history {chunk_id} shows its versions",
        )
    if former:
        done = f"was restored to revision {revision or former[-1]}, as revision {chunk.revision}"
    else:
        done = f"no longer replaces anything, as revision {chunk.revision}"
    call.report(chunk.to_dict(), f"{chunk_id} {done}")


def _print_rest(chunk_ids: Sequence[str], indent: int) -> None:
    """Print how many chunks there are beyond those of which the text is shown."""
    if len(chunk_ids) > _SHOWN_TEXTS:
        print_text(f"… and {len(chunk_ids) - _SHOWN_TEXTS:,} more (--json names all)", "dim", indent=indent)


def _texts(memory: rlm_mem.Memory, chunk_ids: Sequence[str], ops: Sequence[str]) -> list[str]:
    """Return what has become of chunks as these operations were undone; of those in quarantine nothing."""
    active = memory.store.get_many(chunk_ids)
    found = []
    for chunk_id in chunk_ids:
        chunk = active.get(chunk_id) or memory.store.get_archived(chunk_id)
        if chunk is None or chunk.metadata.trust == "quarantined":
            continue
        state = "out of date" if chunk.metadata.superseded_by else "now"
        if chunk_id not in active:
            came_from = str(chunk.metadata.provenance.get("moved_from", "")) if "move" in ops else ""
            state = f"back in {came_from.partition('#')[0]}" if came_from else "archived"
        found.append(f"{state}: {one_line(chunk.content, 120)}")
    return found


def _report(
    done: dict[str, bool],
    verb: str,
    key: str,
    as_json: bool,
    *,
    missing: str = "not found",
    errors: Sequence[NotFoundError] = (),
    remaining: Sequence[str] = (),
) -> None:
    """Print the ids that succeeded, then raise NotFoundError if others were not found.

    Args:
        errors: the errors of those that were not found; raised if it is a single one.
        remaining: where the texts of those that were erased may still be.
    """
    if as_json:
        print_json(
            {
                key: [one for one, worked in done.items() if worked],
                "not_found": [one for one, worked in done.items() if not worked],
                **({"remaining": list(remaining)} if remaining else {}),
            }
        )
    else:
        for chunk_id, worked in done.items():
            if worked:
                print_text(f"{verb} {chunk_id}")
        if remaining:
            print_text("not erased:")
            for line in remaining:
                print_text(f"  {line}", "dim")
    failed = [chunk_id for chunk_id, worked in done.items() if not worked]
    if len(errors) == 1:
        raise errors[0]
    if failed:
        raise NotFoundError(
            f"{missing}: {', '.join(failed)}", hint="rlm-mem list, or rlm-mem list --archived, shows the ids"
        )

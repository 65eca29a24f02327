"""Files that a browser sends: shown before they are stored, stored once, and taken back by the button of the notice."""

from __future__ import annotations

import errno
import io
import json
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.access.tokens import TokenFile
from rlm_mem.dashboard import imports
from rlm_mem.errors import NotFoundError
from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from tests.server.site import HOME, OWN, Site, opened, text_of
from tests.waiting import until

CHAT = json.dumps(
    [{"role": "user", "content": "My dog is called Rex."}, {"role": "assistant", "content": "Rex it is."}]
)


@pytest.fixture
def site(place: Path | str) -> Iterator[Site]:
    with opened(place) as found:
        yield found


def send(site: Site, *files: tuple[str, str | bytes], status: int = 200, **fields: Any) -> tuple[str, str]:
    """Send files; gives the address that follows, and its page."""
    answer = site.client.post(
        "/memories/import",
        data={"in": site.memory.store.namespace, **fields},
        files=[("file", (name, content)) for name, content in files],
        headers=OWN,
    )
    assert answer.status_code == status, answer.text[:2000]
    return str(answer.url).removeprefix(HOME), answer.text


def hidden(page: str, name: str) -> str:
    """The value of a hidden field of the notice, empty if there is none."""
    found = re.search(rf'class="notice".*name="{name}" value="([^"]*)"', page)
    return unescape(found[1]) if found else ""


def contents(site: Site) -> list[str]:
    found = site.memory.store.get_many(site.memory.list_chunks())
    return sorted(chunk.content for chunk in found.values())


def test_what_would_be_stored_is_shown_then_stored_and_taken_back(site: Site) -> None:
    there, page = send(site, ("chat.json", CHAT), ("gate.md", "The gate is green."), ("a.png", b"\x89PNG\0"))
    told = text_of(page)
    assert "My dog is called Rex." in told and "The gate is green." in told
    assert "1 other file without memories" in told
    assert contents(site) == [], "nothing is stored yet"
    page = site.post(there, do="import")
    assert "Imported." in text_of(page)
    assert len(contents(site)) == 2
    assert len(site.memory.recorded_changes()) == 1, "one change, though of chats and notes"
    page = site.post("/changes/undo", change=hidden(page, "change"), back=hidden(page, "back"))
    assert contents(site) == []
    assert "Undone." in text_of(page) and "Result" in text_of(page), "on the page where it was asked"
    page = site.post("/changes/undo", change=hidden(page, "change"), back=hidden(page, "back"))
    assert len(contents(site)) == 2


def test_what_cannot_be_read_is_named_and_the_rest_is_stored(site: Site) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("cut.json", CHAT[:-20])
        archive.writestr("../out.md", "Out.")
        archive.writestr("lock.md", "The lock is oiled in March.")
    there, page = send(site, ("all.zip", packed.getvalue()))
    assert "cut.json" in text_of(page) and "leads out of the archive" in text_of(page)
    page = site.post(there, do="import")
    assert "cut.json" in text_of(page) and "Not read" in text_of(page)
    assert any("oiled in March" in one for one in contents(site))


def test_files_that_are_sent_again_are_stored_once(site: Site) -> None:
    there, _ = send(site, ("notes/gate.md", "The gate is green."), ("notes/key.md", "The key is brass."))
    site.post(there, do="import")
    site.post(there, do="import")
    assert len(contents(site)) == 2
    there, page = send(site, ("notes/gate.md", "The gate is red."), ("notes/key.md", "The key is brass."))
    assert re.search(r"already stored\s*1", text_of(page))
    site.post(there, do="import")
    assert contents(site) == ["The gate is red.", "The key is brass."], "a folder is brought up to date"
    there, _ = send(site, ("gate.md", "Another gate is blue."), ("x.md", "Ex."))
    site.post(there, do="import")
    there, _ = send(site, ("gate.md", "A third gate is white."), ("x.md", "Ex."))
    site.post(there, do="import")
    assert contents(site) == [
        "A third gate is white.", "Another gate is blue.", "Ex.", "The gate is red.", "The key is brass.",
    ]  # fmt: skip
    _, page = send(site, ("x.md", "Ex."), ("gate.md", "A third gate is white."))
    assert 'value="import"' not in page, "nothing is new"


def test_two_folders_of_one_name_are_told_apart(site: Site) -> None:
    def folder(place: str, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        return (("notes/readme.md", f"These are the notes of the {place}."), *more)

    harbour = (("notes/crane.md", "The crane is yellow."), ("notes/quay.md", "The quay is wet."))
    there, page = send(site, *folder("harbour", *harbour))
    assert 'value="other"' not in page
    site.post(there, do="import")
    there, page = send(site, *folder("garden", ("notes/pond.md", "The pond is deep.")))
    assert "Both stay" in text_of(page) and "moved to the archive" not in text_of(page)
    site.post(there, do="import")
    assert len(contents(site)) == 5 and site.memory.list_chunks(archived=True) == []

    # Each is recognised when it is sent again, and its changed documents replace its own.
    there, page = send(site, *folder("allotment", ("notes/pond.md", "The pond is deep.")))
    assert "If this is another folder, both stay" in text_of(page)
    site.post(there, do="import")
    assert "These are the notes of the allotment." in contents(site)
    assert "These are the notes of the harbour." in contents(site) and len(contents(site)) == 5
    there, _ = send(site, *folder("port", *harbour))
    site.post(there, do="import")
    assert "These are the notes of the port." in contents(site) and len(contents(site)) == 5

    # Whoever sends it can say that it is the other way.
    there, _ = send(site, *folder("docks", *harbour))
    site.post(there, do="other")
    assert "These are the notes of the port." in contents(site)
    before = len(site.memory.list_chunks(archived=True))
    there, page = send(site, ("notes/readme.md", "All is new."))
    assert "in place of the earlier folder" in page
    site.post(there, do="other")
    assert "These are the notes of the port." not in contents(site) and "All is new." in contents(site)
    assert len(site.memory.list_chunks(archived=True)) == before + 1


def test_discarded_files_are_gone_from_the_disk(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    there, _ = send(site, ("gate.md", "The gate is green."))
    assert list(tmp_path.rglob("gate.md"))
    assert "nothing was imported" in text_of(site.post(there, do="discard"))
    assert not list(tmp_path.rglob("gate.md")) and contents(site) == []
    assert "no longer kept" in text_of(site.get(there, 404))
    site.post(there, 404, do="import")
    first, _ = send(site, ("gate.md", "The gate is green."))
    second, _ = send(site, ("key.md", "The key is brass."))
    site.get(first, 404)
    assert [one.name for one in tmp_path.rglob("*.md")] == ["key.md"], "one at a time"
    site.post(second, do="import")
    assert not list(tmp_path.rglob("*.md"))


def test_files_are_kept_for_a_time_for_their_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(uploads: imports.Uploads) -> Path:
        folder = uploads.folder()
        (folder / "a.md").write_text("A.")
        uploads.add(imports.Upload("k", ("default", "x"), folder / "a.md", None, "a.md", 1, 2))
        return folder

    uploads = imports.Uploads()
    folder = kept(uploads)
    assert uploads.get("k", ("default", "x")).shown == "a.md"
    for owner in (("other", "x"), ("default", "y")):
        with pytest.raises(NotFoundError):
            uploads.get("k", owner)
    assert folder.exists()
    with uploads.get("k", ("default", "x")).guard:  # while it is imported
        during, folder = folder, kept(uploads)
        assert during.exists()
    monkeypatch.setattr(imports, "_KEPT_SECONDS", 0.01)
    short = kept(uploads)
    assert not folder.exists(), "replaced"
    until(lambda: not short.exists())
    with pytest.raises(NotFoundError):
        uploads.get("k", ("default", "x"))


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd.md", "/abs.md", "C:\\x\\y.md", "a\x01b.md", "x" * 400 + ".md", "ü" * 200 + ".md"],
)
def test_names_of_files_are_only_names(site: Site, name: str) -> None:
    there, page = send(site, (name, "The gate is green."), ("b.md", "The key is brass."))
    assert "The gate is green." in text_of(page)
    site.post(there, do="import")
    assert contents(site) == ["The gate is green.", "The key is brass."]
    send(site, (name, "The gate is red."))


def test_long_names_with_one_beginning_stay_apart(site: Site) -> None:
    title = "Ein sehr langer Titel einer Notiz, " * 5
    there, _ = send(
        site, (f"notes/{title}1.md", "The gate is green."), (f"notes/{title}2.md", "The key is brass.")
    )
    site.post(there, do="import")
    assert contents(site) == ["The gate is green.", "The key is brass."]


def test_a_form_without_files_or_with_a_damaged_one_says_so(site: Site) -> None:
    assert "No file is chosen." in text_of(send(site, ("", ""), status=400)[1])
    _, page = send(site, ("x.zip", b"PK\x03\x04" + bytes(40)), status=400)
    assert "not a valid zip archive" in text_of(page) and "/tmp" not in page
    answer = site.client.post("/memories/import", data={"do": "x"}, headers=OWN)
    assert answer.status_code == 400
    wrong = {**OWN, "content-type": "multipart/form-data"}
    answer = site.client.post("/memories/import", content=b"--x\r\n", headers=wrong)
    assert answer.status_code == 400 and "damaged" in answer.text


def test_a_full_disk_is_told_and_leaves_nothing(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(imports.shutil, "copyfileobj", full)
        _, page = send(site, ("gate.md", "The gate is green."), status=500)
    assert "No space left on device" in text_of(page)
    assert not list(tmp_path.rglob("*.md"))


def test_what_is_too_large_or_too_many_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_mem.dashboard.requests.MAX_UPLOAD_BYTES", 1 << 20)
    assert "more than 1 MiB" in text_of(send(site, ("big.md", b"x" * (2 << 20)), status=413)[1])
    monkeypatch.setattr("rlm_mem.dashboard.requests.MAX_FILES", 3)
    many = [(f"{number}.md", "x") for number in range(4)]
    assert "more than 3 files" in text_of(send(site, *many, status=413)[1])


def test_files_go_to_the_namespace_of_the_page(site: Site) -> None:
    _, page = send(site, ("gate.md", "The gate is green."), status=409, **{"in": "people/ann"})
    assert "was chosen since" in text_of(page)


def test_who_may_not_write_is_offered_no_import_and_no_undo(place: Path | str, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    reader = tokens.create("ana", ["default"], ["read"])[1]
    writer = tokens.create("bo", ["default"], ["write"])[1]
    with Memory.open(place) as memory:
        (one,) = memory.remember("Ben drinks tea.").chunk_ids
    with opened(place, read_only=True) as site:
        assert "/memories/import" not in site.get("/memories")
        site.get("/memories/import", 422)
    with opened(place, tokens=tokens.path) as site:
        change = site.memory.recorded_changes(1)[0].id
        site.client.cookies.clear()
        for secret, offered in ((reader, False), (writer, True)):
            heads = {**OWN, "authorization": f"Bearer {secret}"}
            page = site.client.get("/memories", headers=heads).text
            assert ("/memories/import" in page) is offered
            page = site.client.get(f"/memories/{one}?done=saved&change={change}", headers=heads).text
            assert "Saved" in page and "/changes/undo" not in page
            assert "/changes/undo" not in site.client.get("/changes", headers=heads).text
            answer = site.client.post("/memories/import", files={"file": ("a.md", "A.")}, headers=heads)
            assert answer.status_code == (200 if offered else 403)


# --- the button of a notice -------------------------------------------------------------------------------


def test_a_notice_of_a_change_has_a_button_that_undoes_it_there(site: Site) -> None:
    (one,) = site.memory.remember("Ben drinks green tea.", tags=["people"]).chunk_ids
    page = site.post(f"/memories/{one}", do="archive")
    assert hidden(page, "back") == f"/memories/{one}"
    page = site.post("/changes/undo", change=hidden(page, "change"), back=hidden(page, "back"))
    assert site.memory.get(one) is not None
    assert "Ben drinks green tea." in text_of(page), "the page of the memory, not that of all changes"
    listed = site.client.post(
        "/memories",
        data={"do": "archive", "id": [one]},
        headers={**OWN, "referer": f"{HOME}/memories?tag=people"},
    )
    assert hidden(listed.text, "back") == "/memories?tag=people"
    answer = site.client.post(
        "/changes/undo",
        data={"change": hidden(listed.text, "change"), "back": "//evil.example/memories"},
        headers=OWN,
        follow_redirects=False,
    )
    assert site.memory.get(one) is not None
    assert answer.headers["location"].startswith("/memories?done=taken-back&change="), "not another host"


def test_a_notice_offers_no_undo_of_what_is_no_change_or_no_longer_in_force(site: Site) -> None:
    (one,) = site.memory.remember("Ben drinks green tea.").chunk_ids
    assert not hidden(site.post("/memories", do="archive"), "change"), "nothing was ticked"
    site.post(f"/memories/{one}", do="archive")
    change = site.memory.recorded_changes(1)[0].id
    site.memory.undo(change=change)
    assert not hidden(site.get(f"/memories/{one}?done=archived&change={change}"), "change")
    assert not hidden(site.get(f"/memories/{one}?done=archived&change=2026-unknown"), "change")
    site.memory.delete(one)
    page = site.post(f"/memories/{one}", do="erase")
    assert "Permanently deleted" in text_of(page) and not re.search(r'name="change"', page)


def test_a_notice_offers_the_change_of_its_own_client_only(site: Site, place: Path | str) -> None:
    (one,) = site.memory.remember("Ben drinks green tea.").chunk_ids
    original = ChunkStore.delete_chunk
    with Memory.open(place, actor="somebody else") as other:
        theirs = other.remember("Ana sails on Sundays.") and other.recorded_changes(1)[0].id
        named = site.get(f"/memories/{one}?done=archived&change={theirs}")
        assert "Archived" in text_of(named) and not hidden(named, "change"), "an address that somebody made"

        def delete(*args: Any, **named: Any) -> Any:
            other.remember("Meanwhile, Ana drinks coffee.")
            return original(*args, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rlm_mem.store.core.chunk_store.ChunkStore.delete_chunk", delete)
            page = site.post(f"/memories/{one}", do="archive")
    change = hidden(page, "change")
    found = next(each for each in site.memory.recorded_changes() if each.id == change)
    assert found.chunk_ids == (one,)

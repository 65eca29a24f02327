"""Skills follow the tiers: written when a memory is stable, raised in version, withdrawn when it falls."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from rlm_mem.continuum.skills import write_skills
from rlm_mem.continuum.system import Continuum
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import OpenMemory, Settings
from tests.continuum.conftest import learning, rewrite

pytestmark = pytest.mark.local_only("about the files of skills")


def states(continuum: Continuum, folder: Path) -> list[str]:
    return [one.state for one in write_skills(continuum.store, continuum.files, folder)]


def fall(continuum: Continuum, key: str) -> None:
    """Back to the mid tier, as a reviewer decides."""
    case = continuum.review.open("retain", key, "it failed")
    assert case is not None
    continuum.review.reject(case.id, reviewer="Dana", reason="it does not hold")


def test_a_skill_is_written_updated_and_withdrawn(continuum: Continuum, tmp_path: Path) -> None:
    entry = learning(continuum)
    folder = tmp_path / "skills"
    assert states(continuum, folder) == ["written"]
    (file,) = folder.glob("*/SKILL.md")
    front = YAML(typ="safe").load(file.read_text().split("---\n")[1])
    assert front["name"] == file.parent.name
    assert 0 < len(front["description"]) <= 1_024
    assert front["metadata"]["rlm-mem-key"] == entry.key
    assert entry.chunk_id in file.read_text()
    assert states(continuum, folder) == ["unchanged"]
    former = file.read_text()
    rewrite(
        continuum,
        entry,
        tags=["pages"],
        sources=[*entry.meta.sources, continuum.store.create_chunk("Yes.").id],
    )
    assert states(continuum, folder) == ["updated"]
    assert 'version: "2"' in file.read_text() != former
    (folder / "mine").mkdir()
    (folder / "mine" / "SKILL.md").write_text("---\nname: mine\ndescription: x\n---\n")
    fall(continuum, entry.key)
    assert states(continuum, folder) == ["withdrawn"]
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_skills_come_as_text_that_is_the_one_written(continuum: Continuum, tmp_path: Path) -> None:
    entry = learning(continuum)
    service = Service(OpenMemory(Settings(brain=continuum.store.base_path.parent, every_tool=True)))
    try:
        (skill,) = (service.call("skills", {}).data or {})["items"]
    finally:
        service.close()
    assert continuum.skills()[0].text == skill["text"]
    assert entry.chunk_id in skill["evidence"]
    folder = tmp_path / "skills"
    states(continuum, folder)
    assert (folder / skill["name"] / "SKILL.md").read_text() == skill["text"]
    fall(continuum, entry.key)
    assert continuum.skills() == []
    assert len(continuum.skills(mid=True)) == 1


def test_files_edited_by_hand_are_kept(continuum: Continuum, tmp_path: Path) -> None:
    entry = learning(continuum)
    states(continuum, tmp_path)
    (file,) = tmp_path.glob("*/SKILL.md")
    file.write_text(file.read_text() + "\nMy own remark.\n")
    edited = file.read_text()
    assert states(continuum, tmp_path) == ["edited"]
    fall(continuum, entry.key)
    assert states(continuum, tmp_path) == ["edited"]
    assert file.read_text() == edited


def test_no_skill_is_written_of_what_is_in_quarantine(continuum: Continuum, tmp_path: Path) -> None:
    store = continuum.store
    chunk = store.create_chunk("Run the script first.")
    entry = learning(continuum)
    rewrite(continuum, entry, sources=[*entry.meta.sources, chunk.id])
    for chunk_id in (chunk.id, entry.chunk_id):
        assert len(continuum.skills()) == 1
        states(continuum, tmp_path)
        store.quarantine(chunk_id, "it was planted")
        assert continuum.skills() == []
        assert sorted(states(continuum, tmp_path)) == ["untrusted", "withdrawn"]
        rewrite(continuum, entry, goal_signature=f"goal_of_{chunk_id[-4:]}")
        continuum.consolidate(dry_run=False)
        assert not store.exists(chunk_id) and not continuum.check()
        store.release(chunk_id)
        mirror = store.get_chunk(entry.chunk_id)
        assert mirror is not None and mirror.metadata.extra["goal_signature"] == f"goal_of_{chunk_id[-4:]}"


@pytest.mark.parametrize("how", ["imported", "captured"])
def test_no_skill_is_written_from_untrusted_evidence(continuum: Continuum, tmp_path: Path, how: str) -> None:
    store = continuum.store
    source = "import" if how == "imported" else "transcript"
    # Whatever its tags: an agent can change them.
    chunk = store.create_chunk("Run the script from the page.", source=source)
    entry = learning(continuum)
    states(continuum, tmp_path)
    rewrite(continuum, entry, sources=[*entry.meta.sources, chunk.id])
    assert sorted(states(continuum, tmp_path)) == ["untrusted", "withdrawn"]
    assert not list(tmp_path.glob("*/SKILL.md"))
    assert continuum.skills() == []
    if how == "captured":
        store.update_chunk(chunk.id, metadata={"reviewed_by": "Dana"})
        assert states(continuum, tmp_path) == ["written"]

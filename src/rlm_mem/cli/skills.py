"""`rlm-mem tier skills`: stable memories as skills for coding agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rlm_mem.cli.call import Call
from rlm_mem.cli.options import argument, flag
from rlm_mem.cli.terminal import print_json, screen, text
from rlm_mem.continuum.skills import SKILL_TIERS, write_skills


def tier_skills(
    call: Call,
    folder: Annotated[
        Path, argument("FOLDER", "The folder where agents look for skills, such as .claude/skills.")
    ],
    mid: Annotated[
        bool, flag("--mid", "Also from the mid tier: successful work that is not stable yet.")
    ] = False,
) -> None:
    """Write stable memories as skills (NAME/SKILL.md), update them, and remove those of demoted memories."""
    with call.open() as memory:
        found = write_skills(
            memory.store, memory.continuum.files, folder, tiers=(*SKILL_TIERS, "mid") if mid else SKILL_TIERS
        )
    if call.json:
        print_json(found)
        return
    for one in found:
        screen().print(text(f"{one.state:10}", "dim") + text(one.name, "cyan") + text(f"  {one.key}", "dim"))
    if not found:
        screen().print(text("no memory is stable enough to be a skill", "dim"))

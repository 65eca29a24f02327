"""The answer above a list of memories: the offline model answers a question in the search box."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import Response

from rlm_mem import recall
from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.dashboard.words import first_line, visible, without_marks
from rlm_mem.errors import RlmMemError

if TYPE_CHECKING:
    from rlm_mem.dashboard.visits import Visit

_SOURCES = 3
_ASKING = re.compile(
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|should|would|will|has|have"
    r"|had)(?:n?['’](?:s|t|re|d|ll))?",
    re.IGNORECASE,
)
_LEAST_WORDS = 3


def is_question(text: str) -> bool:
    """Whether a text in the search box is a question: it ends in a question mark, or begins with a question word."""
    query = text.strip()
    if query.endswith(("?", "？", "؟")):
        return len(query) > 1
    words = query[:200].split()
    return len(words) >= _LEAST_WORDS and _ASKING.fullmatch(words[0]) is not None


def answer_part(visit: Visit) -> Response:
    """An answer with one of three outcomes and its sources; empty if no question was asked or a filter is set."""
    question = visit.text("q", 4_000)
    narrowed = any(
        visit.text(name, 500).strip()
        for name in ("type", "tag", "conversation", "speaker", "since", "until", "archived")
    )
    if narrowed or not is_question(question):
        return Response("", headers=dict(HEADERS), media_type="text/html")
    memory = visit.memory
    found = recall.RecallOperation(memory.store, "offline", functions=memory.continuum.functions).recall(
        question
    )
    recorded = memory.config.recall.trajectories and not memory.store.backend.read_only
    return visit.fragment(
        "answer.html",
        block="region",
        question=question.strip(),
        found=found,
        answer=visible(found.content or ""),
        sources=[
            (one, first_line(visible(without_marks(one.excerpt)), 260)) for one in found.sources[:_SOURCES]
        ],
        run=found.trajectory.id if recorded else "",
        model=_other_model(visit),
    )


def _other_model(visit: Visit) -> str:
    """Name of the model that could be asked as well; empty if there is only the offline one."""
    try:
        name = visit.memory.llm.name
    except RlmMemError:  # the page of recalls shows why it is not usable
        return ""
    return "" if name == "offline" else name

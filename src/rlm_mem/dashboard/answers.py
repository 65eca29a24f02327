"""The answer above the list of memories, given by the offline model to a question in the search box."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import Response

from rlm_mem import recall
from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.dashboard.requests import PageRequest
from rlm_mem.dashboard.words import visible, without_marks
from rlm_mem.errors import RlmMemError
from rlm_mem.recall.source_lines import as_written

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.recall.recall import Source

_SOURCES = 3
_ASKING = re.compile(
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|should|would|will|has|have"
    r"|had)(?:n?['’](?:s|t|re|d|ll))?",
    re.IGNORECASE,
)
_MIN_WORDS = 3


def is_question(text: str) -> bool:
    """Whether a text ends in a question mark or begins with a question word."""
    query = text.strip()
    if query.endswith(("?", "？", "؟")):
        return len(query) > 1
    words = query[:200].split()
    return len(words) >= _MIN_WORDS and _ASKING.fullmatch(words[0]) is not None


def answer_part(request: PageRequest) -> Response:
    """An answer with its outcome and sources; empty if no question was asked or a filter is set."""
    question = request.text("q", 4_000)
    narrowed = any(
        request.text(name, 500).strip()
        for name in ("type", "tag", "conversation", "speaker", "since", "until", "archived")
    )
    if narrowed or not is_question(question):
        return Response("", headers=HEADERS, media_type="text/html")
    memory = request.memory
    found = recall.RecallOperation(memory.store, "offline", functions=memory.continuum.functions).recall(
        question
    )
    recorded = memory.config.recall.trajectories and not memory.store.backend.read_only
    return request.fragment(
        "answer.html",
        block="region",
        question=question.strip(),
        found=found,
        answer=visible(without_marks(found.content or "")),
        sources=_with_lines(memory, found.sources[:_SOURCES]),
        run=found.trajectory.id if recorded else "",
        model=_other_model(request),
    )


def _with_lines(memory: Memory, sources: list[Source]) -> list[tuple[Source, str]]:
    """Each source with its line, without the marks at the beginnings of the lines that it was made from."""
    chunks = memory.store.get_many([one.chunk_id for one in sources], track=False)
    made = []
    for one in sources:
        chunk = chunks.get(one.chunk_id)
        written = one.line if chunk is None else as_written(one.line, chunk.content)
        lines = without_marks(written).split("\n")
        made.append((one, visible(" · ".join(line.strip() for line in lines if line.strip()))))
    return made


def _other_model(request: PageRequest) -> str:
    """Name of a configured model other than the offline one; empty if there is none."""
    try:
        name = request.memory.llm.name
    except RlmMemError:  # the page of recalls shows the error
        return ""
    return "" if name == "offline" else name

"""Memories about what an agent is doing with a tool: a command that it runs, or a file that it changes.

Prompts rarely share words with the memories that matter for them; commands and code do, since they name the same
files, tools and identifiers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem.capture.context import HITS, AgentContext, within_budget
from rlm_mem.capture.transcripts import WHOLE
from rlm_mem.store.core.lookup import Filters, sources_of
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.patterns import late

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.search import Hit

_MAX_ACTION = 4_000  # characters that are searched for
_MAX_MEMORIES = 2  # given with one use of a tool
_MIN_SHARED = 2  # terms that action and memory share
_MIN_SHARE = 0.2  # of the terms of the memory
_RARE = 0.1  # of the memories; a term in more of them is no evidence
_ALWAYS_RARE = 3  # memories with a term
_SHORTEST_NUMBER = 3  # digits; shorter ones are mostly options and line numbers

_FIELDS = (
    "command",
    "description",
    "file_path",
    "notebook_path",
    "path",
    "new_string",
    "content",
    "new_source",
)
_GENERIC_FOLDERS = frozenset({"src", "lib", "app", "test", "tests", "docs", "usr", "var", "tmp", "bin"})
_BETWEEN_WORDS = late(r"""[\s"'`(),;=<>]+""")
_EXTENSION = late(r"\.[A-Za-z]\w{0,4}$")


def action_text(tool_input: object, root: Path) -> str:
    """Return what an agent does with a tool as the words to search for; empty if the input has no known field.

    Args:
        tool_input: the input of the tool, as clients pass it to hooks.
        root: the folder of the project, which paths within it need not name.
    """
    if not isinstance(tool_input, Mapping):
        return ""
    edits = tool_input.get("edits")
    parts = [tool_input, *(edits if isinstance(edits, list) else ())]
    texts = chain.from_iterable(
        _strings(one.get(field)) for one in parts if isinstance(one, Mapping) for field in _FIELDS
    )
    text = "\n".join(texts)[:_MAX_ACTION].replace(f"{root}/", "")
    return " ".join(filter(None, map(_without_path, _BETWEEN_WORDS.split(text))))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):  # a command as a list of arguments
        yield " ".join(one for one in value if isinstance(one, str))


def _without_path(word: str) -> str:
    """Return a path as the names in it that tell something; other words as they are."""
    if "/" not in word:
        return word
    *folders, name = [part for part in word.split("/") if part] or [""]
    return " ".join(
        [*(one for one in folders if one.lower() not in _GENERIC_FOLDERS), _EXTENSION.sub("", name)]
    )


def action_context(
    memories: Sequence[Memory], action: str, *, budget: int, known: Collection[str] = ()
) -> AgentContext:
    """The memories about an action, the closest first: at most two, often none.

    A memory is about it if they have two terms in common that few memories contain. Untrusted ones are left out.

    Args:
        action: from :func:`action_text`.
        budget: tokens, at most.
        known: ids of chunks that were given with an earlier action of the session.
    """
    if not action or budget <= 0:
        return AgentContext({})
    found = [pair for memory in memories for pair in _memories_about(memory, action, known)]
    found.sort(key=lambda pair: -pair[0])
    return within_budget([hit for _, hit in found[:_MAX_MEMORIES]], budget)


def _memories_about(memory: Memory, action: str, known: Collection[str]) -> Iterator[tuple[float, Hit]]:
    """Yield each memory about the action, with the share of its terms that are in the action."""
    rare = _rare_terms(memory, action)
    if len(rare) < _MIN_SHARED:
        return
    analyser = get_analyser(memory.config.search.language)
    for hit in memory.search(action, limit=2 * HITS, filters=Filters(trust="ordinary")):
        if hit.chunk_id in known or WHOLE in hit.tags:
            continue
        terms = set(analyser.terms(hit.snippet.removeprefix(f"{hit.author}:")))
        shared = len(terms & rare)
        if shared >= _MIN_SHARED and shared >= _MIN_SHARE * len(terms):
            yield shared / len(terms), hit


def _rare_terms(memory: Memory, action: str) -> set[str]:
    """The terms of an action that a few memories contain."""
    terms = {
        term
        for term in get_analyser(memory.config.search.language).terms(action)
        if len(term) >= (_SHORTEST_NUMBER if term.isdigit() else 2)
    }

    def rare() -> set[str]:
        found: set[str] = set()
        for source in sources_of(memory.store.candidate_source()):
            most = max(_ALWAYS_RARE, _RARE * source.statistics(source.term_ids([])).chunks)
            found |= {term for term, count in source.term_counts(sorted(terms)).items() if count <= most}
        return found

    return memory.store.backend.retried(rare) if terms else set()

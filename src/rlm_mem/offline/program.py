"""The programs that the offline model writes: find passages, pass them to the reader, FINAL.

They are shown with ``--explain`` and kept in trajectories, so they are written to be read: a dozen short lines of
the same shape each time. The second one searches in other words.
"""

from __future__ import annotations

import textwrap

from rlm_mem.offline.question import Question
from rlm_mem.search.query import related_terms
from rlm_mem.text.analysis import get_analyser

__all__ = ["READ_PROMPT", "describe", "fallback_program", "first_program", "other_words", "second_program"]

READ_PROMPT = "Answer from these passages, in their words, as JSON."
"""The prompt with which a program calls the reader; its context has ``question`` and ``passages``, and ``more`` of
them that were found in other words, whose scores are those of other questions."""

_KIND_WORDS = {
    "when": "a time",
    "who": "a person",
    "where": "a place",
    "how_long": "a duration",
    "how_many": "a number",
    "why": "a reason",
    "how": "a manner",
    "name": "a name",
    "kind": "a kind of thing",
    "do": "what somebody does",
    "what": "a thing",
    "yes_no": "yes or no",
    "choice": "a choice",
}

_FIRST = """\
{aim}
import json
question = {question!r}
task = {prompt!r}
found = find_passages({queries}, limit=14)
reading = json.loads(llm_query(task, {{"question": question, "passages": found}}))
print(len(found), "passages; held:", reading["held"], reading["answer"])
if reading["answer"]:
    FINAL(reading["answer"], reading["chunk_ids"], reading["confidence"])
"""

_SECOND = """\
# Not sure: look again in other words before giving up.
more = find_passages({queries}, limit=8)
if stats()["chunk_count"] <= 40:  # a small memory is read whole
    more += [read_chunk(one["id"]) for one in timeline(limit=40)]
reading = json.loads(llm_query(task, {{"question": question, "passages": found, "more": more}}))
print(len(found) + len(more), "passages; held:", reading["held"], reading["answer"])
# Without an answer the ids are those of the closest memories.
FINAL(reading["answer"], reading["chunk_ids"], reading["confidence"])
"""

_FALLBACK = """\
# The last program failed. The plainest way: the memories that come closest.
FINAL(None, search_chunks({question!r}, limit=5), 0.0)
"""


def describe(question: Question) -> str:
    """One sentence on what the question asks for."""
    parts = [f"Asked for: {_KIND_WORDS[question.kind]}"]
    if question.options:
        parts.append("between " + " and ".join(question.options))
    if question.names:
        parts.append("about " + ", ".join(question.names))
    return " ".join((", ".join(parts) + (", several of them." if question.many else ".")).split())


def first_program(question: Question) -> str:
    """The first look: passages, one reading, and FINAL if it gives an answer."""
    names = {*question.names, *(f"{name}'s" for name in question.names)}
    nameless = " ".join(
        word for word in question.text.split() if word.strip("?.,!").replace("’", "'") not in names
    )
    queries = "question"
    if question.names and nameless != question.text:
        # A statement of another person about themselves shows that it does not hold for the one named.
        queries = f"[question, {nameless!r}]"
    aim = textwrap.fill(describe(question), 76, initial_indent="# ", subsequent_indent="# ")
    return _FIRST.format(aim=aim, question=question.text, prompt=READ_PROMPT, queries=queries)


def second_program(queries: list[str]) -> str:
    """The second look, in other words, with the variables of the first one; it ends the run either way."""
    shown = "[\n" + "".join(f"    {query!r},\n" for query in queries) + "]"
    return _SECOND.format(queries=shown if queries else "[]")


def fallback_program(question: Question) -> str:
    """The program after a failure: the closest memories, no answer."""
    return _FALLBACK.format(question=question.text)


_MAX_QUERIES = 4


def other_words(question: Question) -> list[str]:
    """Up to four further searches: the content words without everyday ones, then each class word with its members."""
    analyser = get_analyser("english")
    people = " ".join(question.names)
    plain = [
        word
        for word in question.text.replace("?", " ").split()
        if set(analyser.terms(word)) & question.strong
    ]
    found = [" ".join([people, *plain])] if plain else []
    for word in plain:
        members = [member for term in analyser.terms(word) for member in related_terms(term, analyser)]
        if members:
            found.append(f"{people} {' '.join(members[:8])}".strip())
    if people and plain:
        found.append(" ".join(plain))
    return list(dict.fromkeys(query for query in found if query.strip() and query != question.text))[
        :_MAX_QUERIES
    ]

"""The programs that the offline model writes: search, read, follow links, hand the passages to the reader, FINAL.

They are shown with ``--explain`` and kept in trajectories, so they are written to be read: at most 76 characters a
line wherever the question allows, and the same shape each time.
"""

from __future__ import annotations

import textwrap

from rlm_mem.offline.question import Question

__all__ = ["READ_PROMPT", "describe", "fallback_program", "first_program", "second_program"]

READ_PROMPT = "Answer from these passages, in their words, as JSON."
"""What a program asks of the reader; its context holds ``question`` and ``passages``."""

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

_FIRST = '''\
{aim}
import json
question = {question!r}
hits = search(question, limit=14, by="segment")
{second_search}chunks, passages = {{}}, {{}}

def add(chunk, start, end, author, score):
    """Keep a passage, and what was said just before it."""
    if not author and len(chunk["content"]) <= 600:
        start, end = 0, len(chunk["content"])  # a short note is read whole
    before = chunk["content"][:start].strip()
    if not before and len(passages) < 8:
        for near in neighbors(chunk["id"], 1, 0)["before"]:
            before = near["content"].strip()
    meta = chunk["metadata"]
    chunks[chunk["id"]] = chunk
    passages.setdefault((chunk["id"], start), {{
        "id": chunk["id"], "text": chunk["content"][start:end],
        "author": author, "score": score,
        "at": meta["occurred_at"] or meta["created_at"],
        "before": before.split("\\n")[-1][-400:],
        "replaced": bool(meta["superseded_by"]),
    }})

def add_hits(found, less=0):
    for hit in found:
        name = hit["chunk_id"]
        chunk = chunks.get(name) or read_chunk(name)
        if chunk:
            score = hit["score"] - less
            add(chunk, hit["start"], hit["end"], hit["author"], score)

task = {prompt!r}

def read():
    given = {{"question": question, "passages": list(passages.values())}}
    return json.loads(llm_query(task, given))

add_hits(hits)
# What do links add: a later decision, a contradiction, a detail?
for name in list(chunks)[:3]:
    linked = [chunks[name]["metadata"]["superseded_by"]]
    for kind in ("contradicts", "elaborates", "supports"):
        linked += [c["id"] for c in get_linked_chunks(name, kind)]
    score = max(p["score"] for p in passages.values() if p["id"] == name)
    for other in linked:
        chunk = read_chunk(other) if other and other not in chunks else None
        if chunk:
            add(chunk, 0, 1500, None, score - 0.5)

reading = read()
print(len(passages), "passages; held:", reading["held"], reading["answer"])
if reading["held"] >= {bar}:
    FINAL(reading["answer"], reading["chunk_ids"], reading["confidence"])
'''

_SECOND = """\
# Not sure: look again in other words before giving up.
for words in {queries}:
    add_hits(search(words, limit=8, by="segment"), less=2)
if stats()["chunk_count"] <= 40:  # a small memory: all short notes
    for one in timeline(limit=40):
        chunk = read_chunk(one["id"])
        if chunk and len(chunk["content"]) <= 600:
            add(chunk, 0, 600, None, 0)
reading = read()
print(len(passages), "passages; held:", reading["held"], reading["answer"])
if reading["held"] >= {bar}:
    FINAL(reading["answer"], reading["chunk_ids"], reading["confidence"])
else:
    FINAL(None, [], round(1 - reading["held"], 2))
"""

_FALLBACK = """\
# The last program failed. The plainest way: the best chunk's own words.
found = search_chunks({question!r}, limit=1)
best = read_chunk(found[0]) if found else None
FINAL(best["content"][:300] if best else None, found, 0.1)
"""


def describe(question: Question) -> str:
    """One sentence on what the question asks for."""
    parts = [f"Asked for: {_KIND_WORDS[question.kind]}"]
    if question.options:
        parts.append("between " + " and ".join(question.options))
    if question.names:
        parts.append("about " + ", ".join(question.names))
    return " ".join((", ".join(parts) + (", several of them." if question.many else ".")).split())


def first_program(question: Question, bar: float) -> str:
    """The first look: search, read, links, one reading; FINAL if the chance that there is an answer reaches ``bar``."""
    names = {*question.names, *(f"{name}'s" for name in question.names)}
    nameless = " ".join(
        word for word in question.text.split() if word.strip("?.,!").replace("’", "'") not in names
    )
    second = ""
    if question.names and nameless != question.text:
        second = (
            "# Without the names: did somebody else say it?\n"
            f"nameless = {nameless!r}\n"
            'hits += search(nameless, limit=8, by="segment")\n'
        )
    aim = textwrap.fill(describe(question), 76, initial_indent="# ", subsequent_indent="# ")
    return _FIRST.format(
        aim=aim, question=question.text, second_search=second, prompt=READ_PROMPT, bar=round(bar, 3)
    )


def second_program(queries: list[str], bar: float) -> str:
    """The second look, in other words, with what the first one left behind; it ends the run either way."""
    shown = "[\n" + "".join(f"    {query!r},\n" for query in queries) + "]"
    return _SECOND.format(queries=shown if queries else "[]", bar=round(bar, 3))


def fallback_program(question: Question) -> str:
    """When a program failed: quote the best chunk, with little confidence."""
    return _FALLBACK.format(question=question.text)

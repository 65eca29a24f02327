"""The programs that the offline model writes: search, read, follow links, hand the passages to the reader, FINAL.

They are shown with ``--explain`` and kept in trajectories, so they are written to be read.
"""

from __future__ import annotations

from rlm_mem.llm.offline.question import Question

__all__ = ["READ_PROMPT", "SURE", "fallback_program", "first_program", "second_program"]

SURE = 0.62
"""From this chance on that the memory holds the answer, the first look suffices."""

READ_PROMPT = "Answer the question in the words of these passages. Reply as JSON: answer, held, confidence, chunk_ids."
"""What the program asks of the reader; with ``<context>`` holding ``question`` and ``passages``."""

_KIND_WORDS = {
    "when": "a time", "who": "a person", "where": "a place", "how_long": "a duration", "how_many": "a number", "why": "a reason",
    "how": "a manner", "name": "a name", "kind": "a kind of thing", "do": "what somebody does", "what": "a thing",
    "yes_no": "yes or no", "choice": "one of several options",
}  # fmt: skip

_FIRST = '''\
# {aim}
question = {question!r}
hits = search(question, limit={limit}, by="segment")
{second_search}
chunks, passages = {{}}, []

def add(chunk, start, end, author, score):
    """Keep one passage with what was said just before it."""
    chunks[chunk["id"]] = chunk
    earlier = chunk["content"][:start].strip()
    if not earlier and len(passages) < 12:
        for near in neighbors(chunk["id"], before=1, after=0)["before"]:
            earlier = near["content"].strip()
    meta = chunk["metadata"]
    passages.append({{
        "id": chunk["id"], "text": chunk["content"][start:end], "author": author, "score": score,
        "at": meta["occurred_at"] or meta["created_at"], "before": earlier.split("\\n")[-1][-400:],
        "replaced": bool(meta["superseded_by"] or meta["valid_to"]),
    }})

for hit in hits:
    chunk = chunks.get(hit["chunk_id"]) or read_chunk(hit["chunk_id"])
    if chunk and (chunk["id"], chunk["content"][hit["start"]:hit["end"]]) not in [(p["id"], p["text"]) for p in passages]:
        add(chunk, hit["start"], hit["end"], hit["author"], hit["score"])

# What do links say about the best of them: a later decision, a contradiction, a detail?
for chunk_id in list(chunks)[:4]:
    successor = chunks[chunk_id]["metadata"]["superseded_by"]
    linked = [read_chunk(successor)] if successor else []
    for chunk in get_linked_chunks(chunk_id):
        if chunk["_link_type"] in ("supports", "contradicts", "elaborates", "example_of"):
            linked.append(chunk)
    score = [p["score"] for p in passages if p["id"] == chunk_id][0]
    for chunk in linked:
        if chunk and chunk["id"] not in chunks:
            add(chunk, 0, len(chunk["content"]), None, score - 0.5)

reading = json.loads(llm_query({prompt!r}, {{"question": question, "passages": passages}}))
print(len(passages), "passages from", len(chunks), "chunks; held:", reading["held"], "answer:", reading["answer"])
if reading["held"] >= {sure}:
    FINAL(reading["answer"], chunk_ids=reading["chunk_ids"], confidence=reading["confidence"])
'''

_SECOND = '''\
# {aim}
for words in {queries!r}:
    for hit in search(words, limit=8, by="segment"):
        chunk = chunks.get(hit["chunk_id"]) or read_chunk(hit["chunk_id"])
        if chunk and (chunk["id"], chunk["content"][hit["start"]:hit["end"]]) not in [(p["id"], p["text"]) for p in passages]:
            # Found by other words than the question's: it counts for less than a direct hit.
            add(chunk, hit["start"], hit["end"], hit["author"], min(hit["score"], hits[0]["score"] if hits else 0) - 2.0)

reading = json.loads(llm_query({prompt!r}, {{"question": question, "passages": passages}}))
print(len(passages), "passages; held:", reading["held"], "answer:", reading["answer"])
if reading["held"] >= {bar}:
    FINAL(reading["answer"], chunk_ids=reading["chunk_ids"], confidence=reading["confidence"])
else:
    FINAL(None, chunk_ids=[], confidence=round(1 - reading["held"], 2))
'''

_FALLBACK = '''\
# The last program failed; the plainest way: the best chunk's own words.
found = search_chunks({question!r}, limit=1)
FINAL(read_chunk(found[0])["content"][:300] if found else None, chunk_ids=found, confidence=0.1 if found else 0.5)
'''


def describe(question: Question) -> str:
    """One sentence on what the question asks for."""
    parts = [f"Asked for: {_KIND_WORDS[question.kind]}"]
    if question.options:
        parts.append("between " + " and ".join(question.options))
    if question.names:
        parts.append("about " + ", ".join(question.names))
    return _comment(", ".join(parts) + (", several of them." if question.many else "."))


def first_program(question: Question, limit: int = 14) -> str:
    """The first look: search, read, links, one reading; FINAL if it is sure."""
    plain = " ".join(word for word in question.text.split() if word.strip("?.,!'’s") not in question.names)
    second = ""
    if question.names and plain != question.text:
        second = (
            "# The same without the names: did somebody else say it of themselves?\n"
            f"hits += search({plain!r}, limit=8, by=\"segment\")"
        )
    return "import json\n" + _FIRST.format(
        aim=describe(question), question=question.text, limit=limit, second_search=second, prompt=READ_PROMPT, sure=SURE
    )


def second_program(question: Question, queries: list[str], bar: float) -> str:
    """The second look, in other words; it ends the run either way."""
    return _SECOND.format(
        aim="Not sure yet: look again in other words before giving up.", queries=queries, prompt=READ_PROMPT, bar=bar
    )


def fallback_program(question: Question) -> str:
    """When a program failed: quote the best chunk with little confidence."""
    return _FALLBACK.format(question=question.text)


def _comment(text: str) -> str:
    return " ".join(text.split())

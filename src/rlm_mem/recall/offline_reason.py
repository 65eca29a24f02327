"""REASON without a model: a program that follows the links from the best hits and quotes what it finds.

It replaces the model in the loop, so budgets, sandbox, trajectory and replay are the same as with a model. It is
extractive: its conclusion consists of sentences of the chunks, current facts before superseded ones, and it weighs
chunks only by shared words, links and dates.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Unpack

from rlm_mem.chunk import LINK_TYPES
from rlm_mem.models.base import Completion, Options, Prompt, Usage, as_messages

LINK_WEIGHTS = {kind.name: kind.weight for kind in LINK_TYPES if kind.weight is not None}
"""Share of a chunk's weight that a link of this type passes on; 0.9 for types that a user registered."""
_FOR, _AGAINST = (
    tuple(kind.name for kind in LINK_TYPES if kind.stance == stance) for stance in ("for", "against")
)

_PROGRAM = """\
import math, re
QUESTION = {question!r}
NOW = {now!r}
WEIGHTS = {weights!r}
FOR, AGAINST = {favour!r}, {against!r}
STATED = FOR + AGAINST
MAX_READ, MAX_HOPS, MAX_QUOTED, MAX_WORDS = 32, 3, 4, 200
COMMON = (
    "about been could does from have into should that their them there these they this those were what when "
    "where which whom whose will with would your why who how did the and for was are has had her his you not"
).split()
SHARES = "shares the question's words"

def stems_of(text):
    return [word[:max(4, len(word) - 3)] for word in re.findall(r"\\w+", text.lower())]

# A word of the question counts by how rare it is in the memory.
words = list(dict.fromkeys(re.findall(r"\\w+", QUESTION.lower())))[:MAX_WORDS]
rarity = {{}}
for word in words:
    if len(word) > 2 and word not in COMMON and len(rarity) < 8:
        rarity[stems_of(word)[0]] = math.log(2 + 100 / (1 + len(search_chunks(word, limit=100))))
whole = sum(rarity.values()) or 1.0

def share(text, tags=""):
    said, tagged = set(stems_of(text)), set(stems_of(tags))
    return sum([r if s in said else 0.7 * r if s in tagged else 0 for s, r in rarity.items()]) / whole

def quote(text):
    best, most = "", -1
    for part in re.split(r"(?<=[.!?])\\s+|\\n+", text):
        if len(part) > 12 and share(part) > most:
            best, most = part, share(part)
    # A short text is quoted whole.
    return " ".join((text if len(text) <= 300 else best or text).split())[:300]

seen, order, edges = {{}}, [], []
relevance = {{}}

def visit(chunk_id, passed, source, why, operation):
    chunk = read_chunk(chunk_id)
    if chunk is None:
        return
    meta = chunk["metadata"]
    valid_to, newer = meta.get("valid_to"), meta.get("superseded_by")
    shared = share(chunk["content"], " ".join(chunk["tags"]))
    own = (0.4 * relevance.get(chunk_id, 0) + 0.6 * shared) * (1.25 if chunk["type"] == "decision" else 1.0)
    order.append(chunk_id)
    seen[chunk_id] = {{
        "weight": max(own, passed), "shared": shared, "why": why, "operation": operation, "source": source,
        "newer": newer, "outdated": bool(newer) or bool(valid_to and valid_to < NOW), "links": [],
        "at": (meta.get("valid_from") or meta.get("occurred_at") or meta.get("created_at") or "")[:10],
        "text": quote(chunk["content"]), "confidence": meta.get("confidence") or 0.5,
    }}
    for linked in get_linked_chunks(chunk_id):
        other, kind = linked["id"], linked["_link_type"]
        edges.append((chunk_id, other, kind))
        replaced = linked["metadata"].get("superseded_by") == chunk_id
        seen[chunk_id]["links"].append((other, "replaced" if replaced else kind, linked["_link_strength"]))
    if [1 for other, kind, strength in seen[chunk_id]["links"] if kind in STATED]:
        seen[chunk_id]["weight"] *= 1.15

hits = search(QUESTION, limit=24)
top = max([hit["score"] for hit in hits] + [1e-9])
for hit in hits:
    relevance[hit["chunk_id"]] = max(0.0, hit["score"] / top)
for hit in hits[:14]:
    visit(hit["chunk_id"], 0.0, "", SHARES, "read")
for word in words:
    tagged = [i for i in list_chunks_by_tag(word) if i not in seen]
    # The newest chunks with a tag, and decisions with it.
    for hit in (search(QUESTION, limit=4, tags=word) + search(QUESTION, limit=3, tags=word, chunk_type="decision")
                if tagged else []):
        if hit["chunk_id"] not in seen and len(order) < MAX_READ:
            visit(hit["chunk_id"], 0.0, "", "has the tag " + word, "read")

# From the chunks with the most weight along the links, in both directions.
frontier = [(seen[i]["weight"], i, 0) for i in order]
visited = []
while frontier and len(order) < MAX_READ:
    frontier.sort(key=lambda item: -item[0])
    weight, chunk_id, hops = frontier.pop(0)
    if chunk_id in visited or hops >= MAX_HOPS:
        continue
    visited.append(chunk_id)
    steps = [(other, kind, strength) for other, kind, strength in seen[chunk_id]["links"]]
    if seen[chunk_id]["newer"]:
        steps.append((seen[chunk_id]["newer"], "superseded_by", 1.0))
    for other, kind, strength in steps:
        # Links made by rules are followed only to relevant chunks, stated links always.
        if kind in WEIGHTS and kind not in STATED and relevance.get(other, 0) < 0.3:
            continue
        passed = 0.9 * weight * WEIGHTS.get(kind, 0.9) * (0.5 + strength / 2)
        if other not in seen and len(order) < MAX_READ and passed > 0.1:
            visit(other, passed, chunk_id, kind + " (link with " + chunk_id + ")", "link")
        if other in seen and other not in visited:
            seen[other]["weight"] = max(seen[other]["weight"], passed)
            frontier.append((seen[other]["weight"], other, hops + 1))

print(len(order), "chunks read,", len(edges), "links seen")
current = [i for i in order if not seen[i]["outdated"]]
current.sort(key=lambda i: -seen[i]["weight"])
best = max([seen[i]["weight"] for i in current] + [0.0])
most = max([seen[i]["shared"] for i in order] + [0.0])

def is_relevant(i):
    return seen[i]["weight"] >= 0.6 * best and seen[i]["shared"] >= 0.5 * most

main = [i for i in current if is_relevant(i)][:MAX_QUOTED - 1]
# Chunks linked from these, and successors of chunks that would have been among them.
for _ in range(MAX_HOPS):
    for i in current:
        source = seen[i]["source"]
        root = source in main or (source in seen and seen[source]["newer"] == i and is_relevant(source))
        if i not in main and root and seen[i]["weight"] >= 0.35 * best and len(main) < MAX_QUOTED + 1:
            main.append(i)
against, backing = [], []
for one, other, kind in edges:
    for here, there in ((one, other), (other, one)):
        if here in main and there in seen and not seen[there]["outdated"]:
            if kind in AGAINST and there not in against:
                against.append(there)
            if kind in FOR and there not in backing:
                backing.append(there)

def strength_of(chunk_id):
    backed = len([1 for a, b, kind in set(edges) if kind == "supports" and chunk_id in (a, b)])
    return (round(seen[chunk_id]["shared"], 3), backed, seen[chunk_id]["at"])

# Of two chunks that contradict each other, conclude from the one that shares more words with the question, then the
# one with more support, then the newer one.
for chunk_id in list(against):
    rivals = [a if b == chunk_id else b for a, b, kind in edges if kind in AGAINST and chunk_id in (a, b)]
    rivals = [r for r in rivals if r in main]
    if chunk_id in main and rivals and strength_of(chunk_id) >= strength_of(rivals[0]):
        against.remove(chunk_id)
main = [i for i in main if i not in against]
if most < 0.25 or not [i for i in main if seen[i]["shared"] > 0]:
    FINAL(None, chunk_ids=[], confidence=0.0)
superseded = [i for i in order if seen[i]["outdated"] and (seen[i]["newer"] in main or is_relevant(i))]

def dated(chunk_id):
    return "[" + seen[chunk_id]["at"] + "] " + seen[chunk_id]["text"]

lines = [dated(i) for i in sorted(main, key=lambda i: seen[i]["at"])]
lines += ["Against this: " + dated(i) for i in against[:3]]
lines += ["No longer valid: " + dated(i) for i in superseded[:3]]
path, used = [], []

def add_to_path(chunk_id):
    if chunk_id in used or chunk_id not in seen:
        return
    used.append(chunk_id)
    if seen[chunk_id]["source"]:
        add_to_path(seen[chunk_id]["source"])
    path.append({{"chunk_id": chunk_id, "operation": seen[chunk_id]["operation"], "reasoning": seen[chunk_id]["why"]}})

for chunk_id in main + against + superseded:
    add_to_path(chunk_id)
reason = "quoted in order of time" if len(main) > 1 else "the only chunk that supports the conclusion"
path.append({{"chunk_id": main[0], "operation": "synthesize", "reasoning": reason}})
mean = sum([seen[i]["confidence"] for i in main]) / len(main)
covered = 0.7 * max([seen[i]["shared"] for i in main]) + 0.3 * share(" ".join([seen[i]["text"] for i in main]))
sure = min(0.9, covered * (1 + mean) / 2) * (0.6 if against else 1.0)
supports = main + [i for i in backing if i not in main and i not in against]
FINAL({{"conclusion": "\\n".join(lines), "path": path, "supports": supports, "contradicts": against,
       "superseded": superseded}}, chunk_ids=main + against, confidence=round(sure, 3))
"""


def reason_program(question: str, now: datetime) -> str:
    """The program for ``question``; facts that ended before ``now`` are outdated."""
    return _PROGRAM.format(
        question=question,
        now=now.strftime("%Y-%m-%dT%H:%M:%S"),
        weights=LINK_WEIGHTS,
        favour=_FOR,
        against=_AGAINST,
    )


class OfflineReasoner:
    """Returns :func:`reason_program` for every prompt; free, deterministic, no network."""

    name = "offline"

    def __init__(self, question: str, now: datetime) -> None:
        self._program = reason_program(question, now)

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Return the program as a model would."""
        as_messages(messages)
        text = f"I start from the best hits, follow their links and quote.\n```repl\n{self._program}```"
        on_text = options.get("on_text")
        if on_text is not None:
            on_text(text)
        return Completion(
            text, Usage(), model=self.name, provider="offline", cost=Decimal(0), finish_reason="stop"
        )

"""REASON without a model: a program that walks the links from the best hits and quotes what it finds.

It takes the model's seat in the loop, so budgets, sandbox, trajectory and replay are the same as with a model.
It is extractive and says so: its conclusion consists of sentences of the chunks, newer facts before superseded
ones, and it weighs chunks only by shared words, links and dates.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Unpack

from rlm_mem.llm.base import Completion, Options, Prompt, Usage, as_messages

__all__ = ["LINK_WEIGHTS", "OfflineReasoner", "reason_program"]

LINK_WEIGHTS: dict[str, float] = {
    "supports": 1.0,
    "contradicts": 1.0,
    "elaborates": 1.0,
    "example_of": 0.9,
    "similar_to": 0.5,
    "follows": 0.3,
    "related_to": 0.3,
    "context_of": 0.2,
}
"""How much of a chunk's weight a link of this type hands on; types that a user registered hand on 0.9."""

_PROGRAM = """\
import re
QUESTION = {question!r}
NOW = {now!r}
WEIGHTS = {weights!r}
STATED = ("supports", "contradicts", "elaborates", "example_of")
MOST_READ, MOST_HOPS, MOST_QUOTED = 24, 3, 5
COMMON = (
    "about been could does from have into should that their them there these they this those were what when "
    "where which whom whose will with would your why who how did the and for was are has had her his you not"
).split()
words = [w for w in re.findall(r"\\w+", QUESTION.lower()) if len(w) > 2 and w not in COMMON]

def stem(word):
    return word[:max(3, len(word) - 3)]

stems = [stem(w) for w in words]

def overlap(text):
    found = set([stem(w) for w in re.findall(r"\\w+", text.lower())])
    return len([s for s in set(stems) if s in found])

def quote(text, snippet):
    if snippet:
        return " ".join(snippet.split())[:300]
    best, most = "", -1
    for part in re.split(r"(?<=[.!?])\\s+|\\n+", text):
        shared = overlap(part)
        if part.strip() and shared > most:
            best, most = part.strip(), shared
    return " ".join(best.split())[:300]

hits = search(QUESTION, limit=25)
top = hits[0]["score"] if hits else 0
relevance, snippets = {{}}, {{}}
for hit in hits:
    relevance[hit["chunk_id"]] = max(0.0, hit["score"] / top) if top > 0 else 0.0
    snippets[hit["chunk_id"]] = hit["snippet"]

SHARES = "shares the question's words"
starts = [h["chunk_id"] for h in hits[:5]]
frontier = [(relevance[i], i, 0, "", SHARES, "read") for i in starts]
seen, order, edges = {{}}, [], []
while frontier and len(order) < MOST_READ:
    frontier.sort(key=lambda item: -item[0])
    weight, chunk_id, hops, source, why, operation = frontier.pop(0)
    if chunk_id in seen:
        continue
    chunk = read_chunk(chunk_id)
    if chunk is None:
        continue
    meta = chunk["metadata"]
    valid_to, newer = meta.get("valid_to"), meta.get("superseded_by")
    seen[chunk_id] = {{
        "weight": weight, "why": why, "operation": operation, "source": source, "newer": newer,
        "outdated": bool(newer) or bool(valid_to and valid_to < NOW),
        "at": (meta.get("valid_from") or meta.get("occurred_at") or meta.get("created_at") or "")[:10],
        "text": quote(chunk["content"], snippets.get(chunk_id)), "shared": overlap(chunk["content"]),
        "confidence": meta.get("confidence") or 0.5,
    }}
    order.append(chunk_id)
    if newer:
        frontier.append((weight + 0.1, newer, hops, chunk_id, "supersedes " + chunk_id, "link"))
    if hops >= MOST_HOPS:
        continue
    for linked in get_linked_chunks(chunk_id):
        other, kind = linked["id"], linked["_link_type"]
        edges.append((chunk_id, other, kind))
        passed = weight * WEIGHTS.get(kind, 0.9) * (0.5 + linked["_link_strength"] / 2)
        stated = kind in STATED or kind not in WEIGHTS
        # A link made by a rule leads on only to what the question speaks of; a stated one always does.
        if stated or relevance.get(other, 0) > 0.2:
            reached = 0.8 * passed + 0.4 * relevance.get(other, 0)
            if other in starts:
                frontier.append((reached, other, 0, "", SHARES, "read"))
            else:
                why = kind + " (link with " + chunk_id + ")"
                frontier.append((reached, other, hops + 1, chunk_id, why, "link"))

print(len(order), "chunks read,", len(edges), "links seen")
current = [i for i in order if not seen[i]["outdated"]]
main = [i for i in current if seen[i]["weight"] >= 0.45 and (seen[i]["shared"] or seen[i]["operation"] == "link")]
main.sort(key=lambda i: -seen[i]["weight"])
main = main[:MOST_QUOTED]
against, backing = [], []
for one, other, kind in edges:
    for here, there in ((one, other), (other, one)):
        if here in main and there in seen and not seen[there]["outdated"]:
            if kind == "contradicts" and there not in against:
                against.append(there)
            if kind in ("supports", "elaborates", "example_of") and there not in backing:
                backing.append(there)

def standing(chunk_id):
    backed = len([1 for a, b, kind in set(edges) if kind == "supports" and chunk_id in (a, b)])
    return (seen[chunk_id]["shared"], backed, seen[chunk_id]["at"])

# Of two that contradict each other the one is concluded that says more of what was asked, then the one with more
# support, then the newer one.
for chunk_id in list(against):
    rivals = [a if b == chunk_id else b for a, b, kind in edges if kind == "contradicts" and chunk_id in (a, b)]
    rivals = [r for r in rivals if r in main]
    if chunk_id in main and rivals and standing(chunk_id) >= standing(rivals[0]):
        against.remove(chunk_id)
main = [i for i in main if i not in against]
if not main or not [i for i in main if seen[i]["shared"]]:
    FINAL(None, chunk_ids=[], confidence=0.0)
superseded = [i for i in order if seen[i]["outdated"] and (seen[i]["newer"] in main or seen[i]["weight"] >= 0.45)]

def dated(chunk_id):
    return "[" + seen[chunk_id]["at"] + "] " + seen[chunk_id]["text"]

main_by_time = sorted(main, key=lambda i: seen[i]["at"])
lines = [dated(i) for i in main_by_time]
lines += ["Against this: " + dated(i) for i in against]
lines += ["No longer valid: " + dated(i) for i in superseded[:3]]
path, used = [], []

def walk(chunk_id):
    if chunk_id in used or chunk_id not in seen:
        return
    used.append(chunk_id)
    if seen[chunk_id]["source"]:
        walk(seen[chunk_id]["source"])
    path.append({{"chunk_id": chunk_id, "operation": seen[chunk_id]["operation"], "reasoning": seen[chunk_id]["why"]}})

for chunk_id in main + against + superseded:
    walk(chunk_id)
reason = "quoted in order of time" if len(main) > 1 else "the only chunk that carries the conclusion"
path.append({{"chunk_id": main[0], "operation": "synthesize", "reasoning": reason}})
covered = set()
for chunk_id in main:
    text = read_chunk(chunk_id)["content"].lower()
    covered.update([s for s in stems if s in text])
share = len(covered) / len(set(stems)) if stems else 0.5
mean = sum([seen[i]["confidence"] for i in main]) / len(main)
sure = min(0.9, share * (1 + mean) / 2) * (0.6 if against else 1.0)
supports = main + [i for i in backing if i not in main and i not in against]
FINAL({{"conclusion": "\\n".join(lines), "path": path, "supports": supports, "contradicts": against,
       "superseded": superseded}}, chunk_ids=main + against, confidence=round(sure, 3))
"""


def reason_program(question: str, now: datetime) -> str:
    """The program for ``question``; ``now`` tells facts that ended from those that hold."""
    return _PROGRAM.format(question=question, now=now.strftime("%Y-%m-%dT%H:%M:%S"), weights=LINK_WEIGHTS)


class OfflineReasoner:
    """Writes :func:`reason_program` whatever it is shown; free, deterministic, no network."""

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

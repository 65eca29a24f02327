"""`OfflineLLM`: writes the programs of a recall and reads passages, without a model, a key or a network.

It is extractive: an answer consists of words of the memory, or is a date computed from them. Its programs are shown
with ``--explain`` and recorded in trajectories, so they are readable: a dozen short lines in the same form each
time. The second one searches in other words.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import textwrap
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Unpack

from rlm_mem.chunk import normalise_unicode
from rlm_mem.models.base import SURE, Completion, Message, Options, Prompt, Usage, as_messages, unbroken
from rlm_mem.offline.closest import closest, names_attribute, names_deed, nearness
from rlm_mem.offline.documents import named_documents
from rlm_mem.offline.extraction import with_correction
from rlm_mem.offline.multi_hop import follow
from rlm_mem.offline.nearest import told_by_nearest
from rlm_mem.offline.passages import Passage, Reading, unwrapped, without_earlier_versions
from rlm_mem.offline.question import Question, analyse_question
from rlm_mem.offline.question_kinds import WHO
from rlm_mem.offline.reader import read, told_by_change
from rlm_mem.offline.roles import name_of_role
from rlm_mem.offline.weights import Weights, load_weights
from rlm_mem.search.related import related_terms
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.patterns import late
from rlm_mem.text.present import is_of_the_past
from rlm_mem.text.segments import split_segments

READ_PROMPT = "Answer from these passages, in their words, as JSON."
"""The prompt with which a program calls the reader. Its context has ``question``; ``passages``; ``more``, the
passages of searches in other words, whose scores are not comparable with those of ``passages``; and ``wider``,
further passages for the same words, which are not read for an answer but may be among the closest."""

_FIRST = """\
{aim}
import json
question = {question!r}
task = {prompt!r}
found = passages({queries}, limit={limit})
reading = json.loads(llm_query(task, {{"question": question, "passages": found}}))
print(len(found), "passages; held:", reading["held"], reading["answer"])
if reading["answer"]:
    FINAL(reading["answer"], reading["chunk_ids"], reading["confidence"])
"""

_SECOND = """\
# Not sure: look again in other words before giving up.
more = passages({queries}, limit=16)
wider = []  # only for the closest memories
if stats()["chunk_count"] <= 40:  # a small memory is read whole
    more += all_chunks(limit=40)
else:
    wider = passages(question, limit=50)
for name in reading["documents"]:  # of documents that the question names
    wider += passages(question, limit=30, conversation_id=name)
for one in found + more + wider:
    one["links"] = []  # not read, and too long for one prompt where documents are named
given = {{"question": question, "passages": found, "more": more, "wider": wider}}
reading = json.loads(llm_query(task, given))
while reading.get("sought"):  # the value of a numbered statement is the subject of another
    more += passages(reading["sought"][-1], limit=16)
    given = {{**given, "more": more, "sought": reading["sought"]}}
    reading = json.loads(llm_query(task, given))
answer, guess = reading["answer"], reading["suggestion"]
print(len(found) + len(more), "passages; held:", reading["held"], answer or guess)
# Without an answer the ids are those of the closest memories.
FINAL(answer, reading["chunk_ids"], reading["confidence"], guess)
"""

_FALLBACK = """\
# The last program failed: return the closest memories only.
FINAL(None, search_chunks({question!r}, limit=5), 0.0)
"""


def describe(question: Question) -> str:
    """One sentence on what the question asks for."""
    parts = [f"Asked for: {question.kind.words}"]
    if question.options:
        parts.append("between " + " and ".join(question.options))
    if question.names:
        parts.append("about " + ", ".join(question.names))
    return " ".join((", ".join(parts) + (", several of them." if question.many else ".")).split())


def first_program(question: Question) -> str:
    """The first program: passages, one reading, and FINAL if it has an answer."""
    names = {*question.names, *(f"{name}'s" for name in question.names)}
    nameless = " ".join(
        word for word in question.text.split() if word.strip("?.,!").replace("’", "'") not in names
    )
    queries = "question"
    if question.names and nameless != question.text:
        # Also find what other people say about themselves, which may show that it was not the person named.
        queries = f"[question, {nameless!r}]"
    aim = textwrap.fill(describe(question), 76, initial_indent="# ", subsequent_indent="# ")
    limit = 14 if queries == "question" else 20
    return _FIRST.format(aim=aim, question=question.text, prompt=READ_PROMPT, queries=queries, limit=limit)


def second_program(queries: list[str]) -> str:
    """The second program: searches in other words, uses the variables of the first one and always ends the run."""
    shown = "[\n" + "".join(f"    {query!r},\n" for query in queries) + "]"
    return _SECOND.format(queries=shown if queries else "[]")


def fallback_program(question: Question) -> str:
    """The program after a failure: returns the closest memories and no answer."""
    return _FALLBACK.format(question=question.text)


_MAX_QUERIES = 4
_MAX_DOCUMENTS = 4
"""Most documents named by a question that are searched."""


def other_words(question: Question) -> list[str]:
    """Up to four further queries: the content words without everyday ones, then each class word with its members."""
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


_LABEL = late(r"^\s*(?:\*\*)?(?P<name>[^\W\d_][\w .'’-]{0,40}?)(?:\*\*)?:(?:\*\*)?\s+")

# Characters read of one passage; segments are shorter, but a program may pass any text
_MAX_CHARACTERS = 2000
_NO_ANSWER = "The text does not say."


class OfflineLLM:
    """The built-in default model: deterministic, free, works without a key and a network.

    It answers a ``<question>`` with a program in a ```` ```repl ```` block, and continues after the program's
    ``<output>``; any other prompt (a sub-call such as ``llm_query(prompt, context)``) is answered from the given
    text, in its words. Thread-safe: it has no state.

    Args:
        weights: tables of the reader; None: those of the package.
    """

    name = "offline"

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = weights

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Answer ``messages``; of the options only ``on_text`` has an effect.

        Raises:
            InputError: the prompt is empty, or does not consist of messages.
        """
        started = time.monotonic()
        asked = as_messages(messages)
        text = _reply(asked, self._weights or load_weights())
        on_text = options.get("on_text")
        if on_text is not None:
            on_text(text)
        size = sum(len(message.content) for message in asked)
        # Calls are free, so a rough count is enough: four characters per token.
        usage = Usage(size // 4 + 1, len(text) // 4 + 1, estimated=True)
        return Completion(
            text,
            usage,
            model="offline",
            seconds=time.monotonic() - started,
            provider="offline",
            cost=Decimal(0),
            finish_reason="stop",
        )


def given_passages(text: str, *, wider: bool = False) -> list[Passage] | None:
    """The passages in a message with which a program calls the reader; None for any other message.

    Args:
        wider: include those that are not read for an answer, but may be the closest.
    """
    context = _tagged(text, "context", last=True)
    data = _reader_context(text, _decoded(unbroken(context)) if context is not None else None)
    return None if data is None else _context_passages(data, wider=wider)


def _reader_context(text: str, data: Any) -> dict[str, Any] | None:
    """The context of a message with which a program calls the reader; None for any other message."""
    called = (
        text.startswith(READ_PROMPT) and isinstance(data, dict) and isinstance(data.get("passages"), list)
    )
    return data if called else None


def _context_passages(data: dict[str, Any], *, wider: bool = False) -> list[Passage]:
    """The passages in the context of a reader call; with ``wider``, also those that are not read for an answer."""
    passages = _passages_of_list(data, "passages") + (_passages_of_list(data, "wider") if wider else [])
    scores = [one.score for one in passages]
    drop = statistics.pstdev(scores) if len(scores) > 1 else 0.0
    best = max(scores, default=0.0)
    # Scores of other searches are not comparable, so none may rank above the best of the first search.
    passages += [replace(one, score=min(one.score, best) - drop) for one in _passages_of_list(data, "more")]
    found: dict[tuple[str, str], Passage] = {}
    for one in passages:  # of equal passages keep the first, found for the question itself
        found.setdefault((one.chunk_id, one.text), one)
    return list(found.values())


def _passages_of_list(data: dict[str, Any], name: str) -> list[Passage]:
    """The passages of a list in the context of a program; none if the list is missing."""
    given = data.get(name)
    return [_passage(one) for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _tagged(text: str, tag: str, *, last: bool = False) -> str | None:
    """The text between the first opening tag and the first (or last) closing one after it."""
    begin = text.find(f"<{tag}>")
    if begin < 0:
        return None
    begin += len(tag) + 2
    end = text.rfind(f"</{tag}>", begin) if last else text.find(f"</{tag}>", begin)
    return text[begin:end].strip() if end >= 0 else None


def _reply(asked: Sequence[Message], weights: Weights) -> str:
    context = _tagged(asked[-1].content, "context", last=True) if asked[-1].role == "user" else None
    questions = (_tagged(message.content, "question") for message in asked if message.role == "user")
    question = next((found for found in questions if found is not None), None)
    if question is None or (context is not None and len(asked) == 1):
        return _answer_sub_call(asked[-1].content, context, weights)
    return _program(unbroken(question), asked)


def _program(text: str, asked: Sequence[Message]) -> str:
    question = analyse_question(text)
    last = asked[-1].content
    programs = sum(1 for message in asked if message.role == "assistant")
    if programs and _tagged(last, "error") is not None:
        comment, code = "The program failed; a simpler one.", fallback_program(question)
    elif programs and _tagged(last, "output") is not None and " held: " in last:
        comment, code = (
            "Not sure yet, so I look again in other words.",
            second_program(other_words(question)),
        )
    elif programs > 2:
        comment, code = "The simplest program.", fallback_program(question)
    else:
        comment, code = describe(question), first_program(question)
    return f"{comment}\n```repl\n{code}```"


def _answer_sub_call(prompt: str, context: str | None, weights: Weights) -> str:
    """Answer a sub-call from the context (or from the prompt itself), as JSON if a program calls the reader."""
    data = _decoded(unbroken(context)) if context is not None else None
    called = _reader_context(prompt, data)
    if called is not None:
        return json.dumps(_reading_for_program(called, weights), ensure_ascii=False)
    has_context = context is not None
    given = prompt.partition("<context>")[0].strip() if has_context else prompt.strip()
    asked, text = (given, _texts(data)) if has_context else _question_and_text(given)
    found = read(analyse_question(asked), _passages_of(text), weights)
    return found.answer if found.answer and found.answerable >= weights.bar / 2 else _NO_ANSWER


def _reading_for_program(called: dict[str, Any], weights: Weights) -> dict[str, Any]:
    """The reply to a program; only to one that has searched in other words with a suggestion and closest memories."""
    question = analyse_question(str(called.get("question", "")))
    last = "wider" in called
    passages, shown = _context_passages(called), _context_passages(called, wider=True)
    if not is_of_the_past(question.text):
        passages, shown = without_earlier_versions(passages), without_earlier_versions(shown)
    found = read(question, passages, weights)
    if not names_deed(question, found.passages):
        found = replace(found, confidence=min(found.confidence, SURE))
    answered = (
        found.answer is not None
        and found.answerable >= weights.bar
        and names_attribute(question, found.passages)
    )
    given = called.get("sought")
    sought = [str(one) for one in given] if isinstance(given, list) else []
    way = follow(question, passages, sought)
    if way is None and answered and question.kind is WHO:
        way = name_of_role(found, _passages_of_list(called, "more"), sought, weights)
    if isinstance(way, Reading):
        found, answered = way, True
    elif way is not None:
        answered = False
    near = nearness(question, shown) if last and not (answered and found.confidence > SURE) else []
    if near and not isinstance(way, str):
        told = told_by_nearest(question, shown, near, weights.nearest)
        # An answer that later notes change rests on several.
        if told is not None and (not answered or (told.confidence > SURE and len(found.passages) == 1)):
            found, answered = told, True
    if near and not answered and not isinstance(way, str):
        best, nearest = _passages_of_list(called, "passages"), closest(question, shown, near)[:1]
        changed = told_by_change(question, best, {one.chunk_id for one in nearest})
        found, answered = (changed, True) if changed is not None else (found, False)
    found = with_correction(found)
    sure = answered and found.confidence > SURE
    cited = list(found.passages) if answered else []
    if near and not sure:
        cited += closest(question, shown, nearness(question, shown, known=True))
    reply = {
        "answer": found.answer if sure else None,
        "suggestion": found.answer if answered and not sure else None,
        "held": round(found.answerable, 2),
        # Without either: the probability that there is none.
        "confidence": round(found.confidence if answered else 1 - found.answerable, 2),
        "chunk_ids": list(dict.fromkeys(passage.chunk_id for passage in cited)),
    }
    if not sure:
        reply["documents"] = list(named_documents(question, passages))[:_MAX_DOCUMENTS]
    if isinstance(way, str):
        reply["sought"] = [*sought, way]
    return reply


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _texts(data: Any) -> str:
    """All text in a context of any structure, one line for each piece."""
    found, left = [], [data]  # not by recursion: a program may nest its context as deep as it likes
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict | list):
            left += reversed(one.values() if isinstance(one, dict) else one)
    return "\n".join(filter(None, found))


def _question_and_text(prompt: str) -> tuple[str, str]:
    """Split a prompt without context: its last question, and the rest as the text."""
    asking = [line for line in re.split(r"(?<=[.!?])\s+|\n+", prompt) if line.strip().endswith("?")]
    if not asking:
        head, _, tail = prompt.partition("\n")
        return head, tail
    return asking[-1].strip(), prompt.replace(asking[-1], "\n")


def _passages_of(text: str) -> list[Passage]:
    """The segments of a plain text as passages without scores."""
    found: list[Passage] = []
    text = normalise_unicode("NFC", text)
    for segment in split_segments(text)[:200]:
        body = text[segment.body_start : segment.end]
        previous = found[-1] if found else None
        found.append(Passage("", body, segment.author or "", before=previous.text if previous else ""))
    return found


def _text(data: dict[str, Any], *names: str) -> str:
    """The first of these fields that is not empty, with accents composed as in an analysed question."""
    return normalise_unicode("NFC", str(next(filter(None, map(data.get, names)), ""))[:_MAX_CHARACTERS])


def _passage(data: dict[str, Any]) -> Passage:
    author, text = _text(data, "speaker"), _text(data, "text", "content")
    label = _LABEL.match(text)
    if label and (label["name"].strip().lower() == author.lower() if author else _is_name(label["name"])):
        author, text = author or label["name"].strip(), text[label.end() :]
    text = unwrapped(text)
    at = data.get("at") or data.get("occurred_at") or data.get("created_at")
    context = data.get("before")
    before = normalise_unicode("NFC", str(context[-1])) if isinstance(context, list) and context else ""
    before_label = _LABEL.match(before)
    later, score = data.get("later_note"), data.get("score")
    current = not (data.get("superseded_by") or data.get("ended_at"))
    return Passage(
        str(data.get("chunk_id") or data.get("id") or ""), text, author, _moment(at),
        float(score) if isinstance(score, int | float) and math.isfinite(score) else 0.0,
        before[before_label.end() :] if before_label else before,
        current, _text(data, "heading")[:200], bool(data.get("untrusted")),
        isinstance(data.get("parts"), int) and data["parts"] > 1,
        _text(data, "document")[:400], str(data.get("conversation_id") or ""),
        _passage({**later, "later_note": None}) if isinstance(later, dict) else None,
    )  # fmt: skip


def _is_name(label: str) -> bool:
    """Whether the text before a colon may be a speaker, unlike "long meetings: anything above …"."""
    words = label.split()
    return len(words) == 1 or (len(words) <= 3 and all(word[0].isupper() for word in words))


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # passages are compared with each other

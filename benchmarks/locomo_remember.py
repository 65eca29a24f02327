"""LoCoMo remembered and recalled: every session one conversation, every turn in place, every time kept.

Each conversation gets a namespace of its own in one brain. After remembering it is checked that every turn of the
source is in a chunk of its session, unbroken, and that each chunk's time is that of the first turn in it. Then
questions are recalled with the embedded offline model: none may end in an error. Figures: chunk sizes, time of
remembering, answers, and how often the cited chunks contain the marked evidence.
"""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from locomo import Conversation, Session, load
from rlm_mem.chunk import Chunk, parse_time
from rlm_mem.errors import RlmMemError
from rlm_mem.memory import Memory
from support import Report, arguments, percentile


def remember_session(memory: Memory, session: Session, tags: list[str]) -> list[str]:
    """Remember one session as one conversation; returns the ids of its chunks."""
    result = memory.remember(
        session.text,
        conversation_id=session.conversation_id,
        tags=tags,
        source="import",
        occurred_at=lambda position: session.turn_at(position).at,
        provenance={"dataset": "locomo", "session": session.number},
    )
    return result.chunk_ids


def turns_of(session: Session, chunk: Chunk) -> list[str]:
    """The dia_ids of the turns of a chunk."""
    return [turn.dia_id for turn in session.turns_between(*chunk.metadata.provenance["span"])]


def check_session(memory: Memory, session: Session) -> int:
    """Compare what is stored with the source; returns the number of turns that were cut."""
    chunks = list(memory.store.iter_chunks(conversation_id=session.conversation_id))
    whole: set[str] = set()
    seen: set[str] = set()
    for chunk in chunks:
        start, end = chunk.metadata.provenance["span"]
        expect(chunk.content == session.text[start:end], f"{chunk.id} is not what its span says")
        overlap = chunk.metadata.provenance.get("overlap", 0)
        said = session.turn_at(start + overlap).at
        expect(
            abs(parse_time(chunk.metadata.occurred_at) - said) < timedelta(seconds=1),
            f"{chunk.id} has another time",
        )
        for turn in session.turns_between(start, end):
            first, last = session.span(turn.dia_id)
            seen.add(turn.dia_id)
            if start <= first and last <= end:
                whole.add(turn.dia_id)
    expect(seen == {turn.dia_id for turn in session.turns}, f"{session.conversation_id} lost turns")
    return len(seen - whole)


def expect(holds: bool, failure: str) -> None:
    """Stop the benchmark where store and source differ."""
    if not holds:
        raise RuntimeError(failure)


def measure(memory: Memory, conversation: Conversation, questions: int) -> dict[str, object]:
    """Remember, check and recall one conversation; returns its row of the report."""
    times: list[float] = []
    for session in conversation.sessions:
        started = time.perf_counter()
        remember_session(memory, session, [name.lower() for name in conversation.speakers])
        times.append((time.perf_counter() - started) * 1e3)
    cut = sum(check_session(memory, session) for session in conversation.sessions)
    sizes = [chunk.tokens for chunk in memory.store.iter_chunks()]
    asked = conversation.questions[:: max(1, len(conversation.questions) // questions)] if questions else ()
    errors = answered = cited = with_evidence = 0
    for question in asked:
        try:
            result = memory.recall(question.text)
        except RlmMemError as error:
            errors += 1
            print(f"  {question.text}: {error}", file=sys.stderr)
            continue
        answered += result.content is not None
        if question.evidence and question.category != 5:
            with_evidence += 1
            found = {
                dia_id
                for chunk in memory.store.get_many(result.chunk_ids).values()
                for dia_id in turns_of(
                    conversation.by_conversation_id[chunk.metadata.conversation_id or ""], chunk
                )
            }
            cited += bool(found.intersection(question.evidence))
    return {
        "conversation": conversation.name,
        "sessions": len(conversation.sessions),
        "turns": sum(1 for _ in conversation.turns),
        "chunks": len(sizes),
        "tokens_p50": percentile(sizes, 0.5),
        "tokens_min": min(sizes),
        "tokens_max": max(sizes),
        "turns_cut": cut,
        "ms_per_session": round(percentile(times, 0.5), 1),
        "asked": len(asked),
        "errors": errors,
        "answered": answered,
        "cites_evidence": f"{cited}/{with_evidence}",
    }


def main() -> None:
    """Measure and report; needs the data set."""
    parser = arguments((__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--brain", type=Path, default=None, help="keep the memories in this brain folder")
    parser.add_argument(
        "--questions", type=int, default=40, help="about how many questions to ask per conversation"
    )
    options = parser.parse_args()
    if options.data is None:
        print("skipped: give the folder with the LoCoMo conversations as --data PATH")
        return
    report = Report(
        "locomo_remember", "LoCoMo remembered, checked turn by turn, and recalled from (offline model)"
    )
    with tempfile.TemporaryDirectory(prefix="rlm-mem-locomo-") as name:
        brain = options.brain or Path(name) / "brain"
        for conversation in load(options.data)[: 1 if options.quick else None]:
            with Memory.open(brain, namespace=f"locomo/{conversation.name}", llm="offline") as memory:
                report.add(**measure(memory, conversation, options.questions))
    report.finish(options.output)
    if any(row["errors"] for row in report.rows):
        sys.exit(1)


if __name__ == "__main__":
    main()

"""A minimal program: remember a few things, ask a question, print the sources of the answer."""

from rlm_mem import Memory

with Memory.open("brain") as memory:
    memory.remember(
        "Ana: We chose PostgreSQL for the ledger. MySQL has no row-level security.\n"
        "Ben: Fine with me. I move the test data over on Monday.",
        conversation_id="database-choice",
        tags=["ledger", "database"],
        occurred_at="2026-03-02T10:00:00Z",
    )
    memory.remember(
        "Ana drinks green tea in the morning, and no coffee after noon.",
        conversation_id="kitchen",
        chunk_type="preference",
        confidence=0.9,
    )

    result = memory.recall("Which database did we choose for the ledger?")
    print(result.content or f"not certain, but possibly: {result.suggestion}")
    for source in result.sources:
        print(f"  {source.chunk_id}  {source.at}  {source.line}")
    print(f"  confidence {result.confidence:.2f}, {len(result.trajectory.steps)} program(s)")

"""A memory for each project: decisions with their reasons, found by words, one superseding another."""

from brain.scripts import Chunk, ChunkStore
from rlm_mem.search import search


class ProjectMemory:
    """Decisions of one project, in their own store."""

    def __init__(self, project_name: str, brain: str = "brain") -> None:
        self.store = ChunkStore(f"{brain}/memory/projects/{project_name}")
        self.project_name = project_name

    def store_decision(self, decision: str, rationale: str, replaces: str | None = None) -> Chunk:
        """Store a decision; `replaces` is the id of a former decision."""
        chunk = self.store.create_chunk(
            content=f"Decision: {decision}\nRationale: {rationale}",
            type="decision",
            tags=["decision", self.project_name],
        )
        if replaces is not None:
            self.store.update_chunk(
                replaces, metadata={"superseded_by": chunk.id, "valid_to": chunk.metadata.created_at}
            )
            self.store.add_link(chunk.id, replaces, "contradicts", 1.0, "decided anew")
        return chunk

    def decisions(self) -> list[str]:
        """The current decisions, oldest first."""
        chunks = self.store.iter_chunks(tags=["decision", self.project_name])
        return [chunk.content.partition("\n")[0] for chunk in chunks if chunk.metadata.superseded_by is None]

    def why(self, about: str) -> str | None:
        """The decision that matches these words best, with its rationale."""
        hits = search(self.store, about, limit=1)
        chunk = self.store.get_chunk(hits[0].chunk_id) if hits else None
        return chunk.content if chunk else None

    def close(self) -> None:
        """Close the store."""
        self.store.close()


def main() -> None:
    """Two projects with separate memories."""
    ledger = ProjectMemory("ledger")
    mysql = ledger.store_decision("MySQL for the ledger", "the team knows it")
    ledger.store_decision("PostgreSQL for the ledger", "row-level security", replaces=mysql.id)
    ledger.store_decision("Money as integer cents", "no rounding in sums")
    website = ProjectMemory("website")
    website.store_decision("Static pages", "nothing to keep patched")

    print("ledger: ", *ledger.decisions(), sep="\n  ")
    print("website:", *website.decisions(), sep="\n  ")
    print("Which database?", ledger.why("database PostgreSQL ledger"), sep="\n  ")
    print("Asked of the website:", website.why("row-level security") or "nothing is known")
    ledger.close()
    website.close()


if __name__ == "__main__":
    main()

"""What lies in a store, byte for byte, whatever keeps it: for tests that something was, or was not, written."""

from __future__ import annotations

from pathlib import Path


def stored(base: Path | str) -> dict[str, bytes]:
    """Every chunk, archived one and former version, by the path that it has (or would have) below the store."""
    if isinstance(base, Path):
        records_of_changes = base / "archive" / "continuum"
        return {
            path.relative_to(base).as_posix(): path.read_bytes()
            for folder in ("chunks", "archive")
            for path in sorted((base / folder).rglob("*.json"))
            if records_of_changes not in path.parents
        }
    import psycopg

    with psycopg.connect(base) as connection:
        chunks = connection.execute(
            "SELECT CASE status WHEN 0 THEN 'chunks/' || left(created_at, 7) ELSE 'archive' END || '/' || id ||"
            " '.json',"
            " body FROM rlm_mem.chunks JOIN rlm_mem.bodies USING (ns, doc)"
        ).fetchall()
        versions = connection.execute(
            "SELECT 'archive/versions/' || id || '/' || revision || '.json', body FROM rlm_mem.versions"
        ).fetchall()
    return {name: body.encode() for name, body in sorted(chunks + versions)}


def everything(base: Path | str) -> dict[str, bytes]:
    """Every file below the store, or every row of every table."""
    if isinstance(base, Path):
        return {
            path.relative_to(base).as_posix(): path.read_bytes()
            for path in sorted(base.rglob("*"))
            if path.is_file() and not path.name.endswith("-shm")
        }
    import psycopg

    with psycopg.connect(base) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'rlm_mem' ORDER BY 1")
        rows = {
            str(name): connection.execute(
                f"SELECT coalesce(string_agg(t::text, chr(10) ORDER BY t::text), '') FROM rlm_mem.{name} t"
            ).fetchone()
            for (name,) in tables.fetchall()
        }
    return {name: row[0].encode() for name, row in rows.items() if row}

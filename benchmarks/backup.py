"""Backing up a memory during writes, and restoring it: duration, size, and delay of writers.

The command makes the backup in a process of its own while this one remembers a note every few milliseconds; the longest
of these remembers bounds how long the backup held the lock. Then the backup is verified and restored elsewhere, index
included.

    python benchmarks/backup.py                                      # 1,000, 10,000 and 100,000 chunks
    python benchmarks/backup.py --sizes 10000 --store postgresql://localhost/bench
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from growing import Growing, remember
from rlm_mem.memory import Memory
from rlm_mem.store.backup import restore_backup
from rlm_mem.store.core.backup_archive import read_backup
from support import Report, arguments, percentile, timed, timings

_PAUSE = 0.005


def measure(growing: Growing, size: int, folder: Path) -> dict[str, Any]:
    """One row; the backup is compared with the memory before and after it was made."""
    file = folder / f"backup-{size}.tar.gz"
    first = time.time_ns() // 1000
    with growing.opened() as memory:
        alone = timings(lambda number: remember(memory, number), range(first, first + 100))
        before = memory.stats().chunk_count
        program = [sys.executable, "-m", "rlm_mem", "--brain", str(growing.place)]
        began = time.perf_counter()
        backup = subprocess.Popen([*program, "backup", str(file), "--json"], stdout=subprocess.DEVNULL)
        during = _remember_until_done(memory, backup, first + 1000)
        took = time.perf_counter() - began
        after = memory.stats().chunk_count
    if backup.returncode:
        raise RuntimeError(f"rlm-mem store backup ended with {backup.returncode}")
    verify_ms, info = timed(lambda: read_backup(file))
    if not before <= info.chunks <= after:
        raise RuntimeError(f"{info.chunks} chunks in a backup of {before} to {after}")
    restore_ms, _ = timed(lambda: restore_backup(file, folder / f"restored-{size}"))
    with Memory.open(folder / f"restored-{size}") as memory:
        if memory.stats().chunk_count != info.chunks:
            raise RuntimeError("the restored memory has another number of chunks than the backup")
    return {
        "backup s": round(took, 1),
        "file MB": round(file.stat().st_size / 1e6, 1),
        "verify s": round(verify_ms / 1e3, 1),
        "restore s": round(restore_ms / 1e3, 1),
        "remember without a backup, p50 ms": percentile(alone, 0.5),
        "remember without a backup, max ms": max(alone),
        "remembered during the backup": len(during),
        "during the backup, p50 ms": percentile(during, 0.5),
        "during the backup, p95 ms": percentile(during, 0.95),
        "during the backup, max ms": max(during),
    }


def _remember_until_done(memory: Memory, backup: subprocess.Popen[bytes], first: int) -> list[float]:
    costs = []
    while backup.poll() is None:
        costs.append(timed(lambda: remember(memory, first + len(costs)))[0])
        time.sleep(_PAUSE)
    return costs


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", type=int, nargs="+", default=None, help="numbers of chunks")
    parser.add_argument("--store", default=None, help="a DSN, in place of a folder; it is filled one by one")
    options = parser.parse_args()
    sizes = options.sizes or ([500, 2_000] if options.quick else [1_000, 10_000, 100_000])
    report = Report(
        "backup", "Backup and restore while a process remembers (milliseconds unless named otherwise)"
    )
    with tempfile.TemporaryDirectory(prefix="rlm-mem-backup-") as name:
        growing = Growing(options.store or Path(name) / "brain")
        for size in sizes:
            if growing.local:
                growing.lay_down(size)
            else:
                growing.write(size)
            with growing.opened():
                pass  # indexes the files
            report.add(chunks=size, **measure(growing, size, Path(name)))
    report.finish(options.output)


if __name__ == "__main__":
    main()

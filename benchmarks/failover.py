"""A PostgreSQL primary is killed (SIGKILL, every process of it) under load, its standby takes over; several times.

Two real servers on loopback, streaming replication, commits acknowledged once both have them; writers reach them by one
DSN with two hosts and `target_session_attrs=read-write`. The standby is promoted as soon as the primary is dead, as an
operator's tool would after noticing: the time to notice is that tool's and comes on top. Rows: kills, seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support import Report, arguments


def main() -> None:
    """Kill, promote, count; exits 1 if an acknowledged write is missing or a refused one is present."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.failover import fail_over
    from tests.postgres import NoServer

    parser = arguments(__doc__ or "")
    parser.add_argument("--writers", type=int, default=8, help="processes that write all the time")
    parser.add_argument("--kills", type=int, default=5, help="how many primaries are killed")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="of load before each kill, and after the last"
    )
    options = parser.parse_args()
    kills, seconds = (2, 3.0) if options.quick else (options.kills, options.seconds)
    try:
        outcome = fail_over(options.writers, kills, seconds)
    except NoServer as error:
        print(error)
        return
    report = Report("failover", f"{options.writers} writers while {kills} primaries are killed (seconds)")
    for number, (promoted, gap) in enumerate(
        zip(outcome.promote_seconds, outcome.gap_seconds, strict=True), 1
    ):
        report.add(trial=number, promotion_s=promoted, without_acknowledged_writes_s=gap)
    bad = {
        "acknowledged writes lost": len(outcome.lost),
        "duplicated writes": len(outcome.twice),
        "refused writes that are present": len(outcome.denied),
        "integrity findings": len(outcome.findings),
    }
    report.facts = {
        "acknowledged writes": outcome.writes,
        **bad,
        "refused writes that are absent": outcome.refused,
        "writes with an unknown outcome": outcome.undecided,
    }
    report.finish(options.output)
    for line in (*outcome.lost[:10], *outcome.twice[:10], *outcome.denied[:10], *outcome.findings[:10]):
        print(line, file=sys.stderr)
    if any(bad.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

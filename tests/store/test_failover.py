"""A PostgreSQL primary dies under load and its standby takes over: what was acknowledged is there, once."""

from __future__ import annotations

import pytest

from tests.failover import fail_over
from tests.postgres import NoServer


def test_no_acknowledged_write_is_lost_when_the_primary_is_killed_and_the_standby_promoted() -> None:
    """Real servers, SIGKILL, ``pg_ctl promote``; writers go on by themselves through a DSN with both hosts."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    try:
        outcome = fail_over(writers=3, rounds=1, seconds=1.5)
    except NoServer as error:
        pytest.skip(str(error))
    assert outcome.kills == 1
    assert outcome.writes > 20, "the writers must have got somewhere"
    assert outcome.gap_seconds[0] < 60, "and they went on afterwards"
    assert outcome.lost == []
    assert outcome.twice == []
    assert outcome.denied == []
    assert outcome.findings == []

"""What the page docs/benchmarks.md shows of large results; docs/benchmarks/tables.md has all of them.

Also the two lists at the top of that page: what was measured beside what, and what does not hold. Everything is read
from the results, so that no figure is written by hand. Select rows by what decides, never by what looks better: a
column or row that shows a failure stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Result = dict[str, Any]
Rows = list[dict[str, Any]]

HELD_OUT = ("held out", "closed half", "many forms")
"""In names of corpora: on these no rule was developed."""


class Table(NamedTuple):
    """A table of the page: its title, if there are several, its columns and its rows."""

    title: str
    columns: Sequence[str]
    rows: Rows


def _no_table(_: Result) -> list[Table]:
    return []


class Selection(NamedTuple):
    """The tables and facts that the page shows of a result."""

    tables: Callable[[Result], list[Table]]
    facts: Sequence[str] = ()


def columns(*names: str, where: Callable[[dict[str, Any]], bool] | None = None) -> Selection:
    """One table of these columns, of the rows that fit."""

    def tables(result: Result) -> list[Table]:
        return [Table("", names, [row for row in result["rows"] if where is None or where(row)])]

    return Selection(tables)


def _pivot(
    rows: Rows, key: str, across: str, cell: Callable[[dict[str, Any]], object], last: Sequence[str] = ()
) -> Table:
    """A row for each value of `key`, and a column for each value of `across`."""
    made: dict[str, dict[str, Any]] = {}
    for row in rows:
        made.setdefault(row[key], {key: row[key]})[row[across]] = cell(row)
    for row in rows:
        made[row[key]] |= {name: row[name] for name in last if name in row}
    heads = dict.fromkeys(row[across] for row in rows)
    return Table("", [key, *heads, *last], list(made.values()))


def _ranking(result: Result) -> list[Table]:
    def both(row: dict[str, Any]) -> str:
        return f"{row['recall@10']:.1f}/{row['nDCG@10']:.1f}"

    return [_pivot(result["rows"], "set", "system", both, ["questions"])]


def _answers(result: Result) -> list[Table]:
    def both(row: dict[str, Any]) -> str:
        parts = (row["score"], row["evidence read"])
        return "/".join("–" if isinstance(part, str) else f"{part:.2f}" for part in parts)

    return [_pivot(result["rows"], "set", "system", both, ["questions"])]


def _diary(result: Result) -> list[Table]:
    closed = [row for row in result["rows"] if any(part in row.get("corpus", "") for part in HELD_OUT)]
    return [
        Table(
            "Changes and questions about them",
            (
                "corpus", "changes stated in the text", "of these applied",
                "applied, or the outdated memory named to the agent", "wrong replacements", "outdated first hits",
                "outdated without a later note", "first hit gives the valid value", "outdated answers",
                "new value given", "look-alike is the first hit", "answered with the look-alike",
            ),
            closed,
        ),
        Table(
            "Notes among which little changes",
            ("set", "questions", "right first hit by words alone", "right first hit", "moved behind another note"),
            [row for row in result["rows"] if "set" in row],
        ),
    ]  # fmt: skip


def _soak(result: Result) -> list[Table]:
    checked: Rows = result["facts"]["checked afterwards"]
    recalls = {row["backend"]: row for row in result["rows"] if row["operation"] == "remember"}
    rows = [row | {"longest remember ms": recalls[row["backend"]]["max_ms"]} for row in checked]
    return [Table("", (*checked[0], "longest remember ms"), rows)]


def _peers(result: Result) -> list[Table]:
    most = max(row["memories"] for row in result["rows"])
    return [
        Table(
            f"Times in milliseconds with {most:,} memories",
            (
                "memory", "add p50", "get p50", "search p50", "found by search", "list a tag p50", "start and open",
                "bulk insert, memories/s", "disk MB",
            ),
            [row for row in result["rows"] if row["memories"] == most],
        ),
        Table("Behaviour", list(result["facts"]["behaviour"][0]), result["facts"]["behaviour"]),
    ]  # fmt: skip


#: What the page shows of a result; one without an entry is shown completely.
SELECTED: dict[str, Selection] = {
    "ranking": Selection(_ranking, ("all-MiniLM-L6-v2 skipped", "measured before")),
    "ranking_fit": Selection(_no_table),
    "search_scale": columns(
        "chunks", "RLM-MEM p50", "RLM-MEM p95", "FTS5 p50", "FTS5 p95", "FTS5, best words, p50",
        "first search, cold, ms", "postings MB", "FTS5 MB",
    ),
    "sizing": columns("chunks", "kind", "KB per chunk", "memory_after_searches_mb"),
    "backup": columns(
        "chunks", "backup s", "file MB", "restore s", "remember without a backup, p50 ms",
        "during the backup, p95 ms", "during the backup, max ms",
    ),
    "folders": columns(
        "files", "rounds", "file changes", "rounds with equal results", "sync_p50_ms", "sync_p95_ms"
    ),
    "filling": columns("texts", "method", "store", "chunks", "texts/s after", "speed-up"),
    "interchange": columns("what", "megabytes", "export s", "import s", "chunks", "chunks equal in all fields"),
    "growth": Selection(
        lambda result: [
            Table(
                "",
                (
                    "chunks", "store", "remember", "remember p95", "floor", "get", "search", "50 chunks of a tag",
                    "three hops of links", "recall", "check s", "rebuild s", "index MB",
                ),
                [row for row in result["rows"] if row["chunks"] in (1_000, 1_000_000)],
            )
        ],
        ("the folder",),
    ),
    "start": columns("process", "p50_ms", "cpu_ratio"),
    "coding_month": columns(
        "half", "sessions", "sentences to keep", "of these kept %", "kept by mistake %",
        "given with a related prompt %", "unrelated prompts without context %", "hook p50 ms",
    ),
    "diary": Selection(_diary),
    "sandbox": Selection(
        lambda result: [_pivot(result["rows"], "operation", "engine", lambda row: row["p50_ms"], ["target_ms"])]
    ),
    "recall_overhead": columns("operation", "p50_ms", "p95_ms", where=lambda row: row["chunks"] == 10_000),
    "offline_answers": Selection(
        lambda result: [
            Table(
                "",
                (
                    "category", "questions", "F1", "F1_of_the_baseline", "evidence_cited",
                    "evidence_in_the_baseline", "abstained",
                ),
                result["rows"],
            )
        ],
        (
            "F1 of all answerable questions", "F1 of the baseline", "share abstained if there is no answer",
            "share abstained if there is one", "median seconds per question",
        ),
    ),
    "offline_calibration": Selection(_no_table, ("expected calibration error",)),
    "offline_corpora": columns(
        "set", "answerable", "right", "right_as_suggestion", "right_or_passage", "wrong_and_confident",
        "right_if_suggested", "unanswerable", "not_answered_if_unanswerable",
        where=lambda row: row["half"] == "held out",
    ),
    "small_models": columns(
        "model", "scaffold", "answerable", "right", "right_as_suggestion", "right_or_passage", "wrong_answers",
        "model_replies", "usable_replies", "seconds_per_question",
    ),
    "answers": Selection(_answers),
    "host_trial": columns(
        "round", "set", "questions", "mark", "programs", "chars read", where=lambda row: row["round"] >= 33
    )._replace(facts=("nature", "round 37")),
    "continuum_year": Selection(
        _no_table,
        (
            "uses", "precision of promotions to the low tier", "recall of good goals with at least 30 uses",
            "good goals with at least 30 uses", "largest number of memories", "findings of the check",
        ),
    ),
    "continuum_scale": columns(
        "memories", "first_sync_s", "consolidation, dry run", "pruning, dry run", "weighted query p50",
        "weighted query p95",
    ),
    "dashboard": columns("what", "p50_ms", "p95_ms", "target_ms"),
    "pages": columns("page", "performance", "accessibility", where=lambda row: "performance" in row)._replace(
        facts=("violations",)
    ),
    "telemetry": columns("operation", "off_p50_ms", "on_p50_ms"),
    "team": columns(
        "clients", "requests", "p50_ms", "p95_ms", "leaks_across_scopes", "revocations", "slowest_revocation_ms",
        "writes_acknowledged", "writes_lost", "writes_duplicated", "writes_in_a_wrong_namespace",
    ),
    "postgres_search": columns(
        "chunks", "search p50", "ids p50", "local ids p50", "built-in p50", "built-in, best words, p50",
        "same hits and scores as local", "insert p50",
    ),
    "soak": Selection(_soak),
    "distant": columns(
        "operation", "round_trips", "server_next_door_ms", "server_5_ms_away_ms",
        where=lambda row: row["operation"] in ("remember", "get", "search", "recall, offline", "update"),
    ),
    "cluster": columns(
        "trial", "acknowledged", "acknowledged but lost", "written twice", "refused", "refused but present",
        "longest write s", "longest refusal s", "problems",
    )._replace(facts=("Time relative to one PostgreSQL server",)),
    "peers": Selection(_peers, ("versions",)),
}  # fmt: skip


# --- the lists at the top ----------------------------------------------------------------------------------


class Results:
    """The results, each row found by the values of its columns."""

    def __init__(self, results: dict[str, Result]) -> None:
        self._results = results

    def rows(self, name: str, **where: object) -> Rows:
        """The rows that have these values."""
        return [
            row
            for row in self._results[name]["rows"]
            if all(row.get(key) == value for key, value in where.items())
        ]

    def one(self, name: str, column: str, **where: object) -> Any:
        """The value of a column in the one row with these values."""
        [row] = self.rows(name, **where)
        return row[column]

    def fact(self, name: str, fact: str) -> Any:
        return self._results[name]["facts"][fact]


def overview(results: dict[str, Result], shown: Callable[[object], str]) -> Rows:
    """What was measured, beside what: the table at the top of the page."""
    of = Results(results)
    lines = [*_overview_of_asking(of, shown), *_overview_of_keeping(of, shown)]
    return [dict(zip(("what", "RLM-MEM", "compared with"), line, strict=True)) for line in lines]


def _overview_of_asking(of: Results, shown: Callable[[object], str]) -> Iterable[tuple[str, str, str]]:
    left_out = {row["set"] for row in of.rows("ranking", system="RLM-MEM, set left out")}

    def found(system: str) -> str:
        rows = [row for row in of.rows("ranking", system=system) if row["set"] in left_out]
        return f"{shown(sum(row['recall@10'] for row in rows) / len(rows))} %"

    yield (
        f"[relevant texts in the first ten](#ranking), mean of {len(left_out)} sets, weights learned without the set",
        found("RLM-MEM, set left out"),
        f"SQLite FTS5 {found('SQLite FTS5')}, bm25s {found('bm25s')}",
    )
    most = max(of.rows("search_scale"), key=lambda row: row["chunks"])
    yield (
        f"[search in {shown(most['chunks'])} chunks](#search-at-size), p50",
        f"{shown(most['RLM-MEM p50'])} ms",
        f"SQLite FTS5 {shown(most['FTS5 p50'])} ms; with its four best words {shown(most['FTS5, best words, p50'])} ms",
    )
    yield (
        "[answers without a model](#answers-of-the-offline-model) (LoCoMo), token F1",
        shown(of.fact("offline_answers", "F1 of all answerable questions")),
        f"best sentence of the first hit {shown(of.fact('offline_answers', 'F1 of the baseline'))}",
    )
    [whole], [asked] = of.rows("host_trial", round=37), of.rows("host_trial", round=36)
    yield (
        "[answers with a model](#a-trial-by-hand) (BEAM 100K, marked side by side), mean mark and characters read",
        f"{shown(asked['mark'])}, {shown(asked['chars read'])}",
        f"the whole chat read instead: {shown(whole['mark'])}, {shown(whole['chars read'])}",
    )


def _overview_of_keeping(of: Results, shown: Callable[[object], str]) -> Iterable[tuple[str, str, str]]:
    peers = _largest_peers(of)
    others = ", ".join(
        f"{name.split(',')[0]} {shown(row['add p50'])} ms"
        for name, row in peers.items()
        if "RLM-MEM" not in name
    )
    ours = peers["RLM-MEM, Python"]
    yield (
        f"[adding a memory to {shown(ours['memories'])}](#compared-with-other-memories), p50",
        f"{shown(ours['add p50'])} ms",
        others,
    )
    large = max(of.rows("growth", store="local"), key=lambda row: row["chunks"])
    yield (
        f"[adding a memory to {shown(large['chunks'])}](#growth), present version, p50",
        f"{shown(large['remember'])} ms",
        f"one synced file and SQLite commit {shown(large['floor'])} ms",
    )
    yield (
        "[hook of a coding agent](#a-month-with-coding-agents), p50",
        f"{shown(of.one('coding_month', 'hook p50 ms', half='held out'))} ms",
        "",
    )
    checked: Rows = of.fact("soak", "checked afterwards")
    lost = sum(row["lost updates"] + row["not as acknowledged"] for row in checked)
    yield (
        "[acknowledged changes lost](#many-processes-for-minutes) while processes were killed",
        f"{lost} of {shown(sum(row['acknowledged changes'] for row in checked))}",
        "",
    )
    [team] = of.rows("team")
    yield (
        f"[texts of other clients](#team-server) seen by {team['clients']} clients of one server",
        f"{team['leaks_across_scopes']} in {shown(team['requests'])} requests",
        "",
    )


def limits(results: dict[str, Result], shown: Callable[[object], str]) -> list[str]:
    """What speaks against the product, with its figures."""
    of = Results(results)
    return [*_limits_of_answers(of, shown), *_limits_of_speed(of, shown), *_limits_of_measuring(of, shown)]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _limits_of_answers(of: Results, shown: Callable[[object], str]) -> Iterable[str]:
    closed = [
        row
        for row in of.rows("diary")
        if "closed half" in row.get("corpus", "") and not row["corpus"].startswith("found")
    ]
    stated, applied, named = (
        sum(row[column] for row in closed)
        for column in (
            "changes stated in the text",
            "of these applied",
            "applied, or the outdated memory named to the agent",
        )
    )
    worst = min(closed, key=lambda row: row["first hit gives the valid value"])
    yield (
        f"**A change in unfamiliar words is not applied.** Of {stated} changes stated in the closed halves by other"
        f" authors, {applied} replaced the outdated memory, and the agent was told of it in {named}. In"
        f" *{worst['corpus']}*, the first hit gives the valid value for"
        f" {_percent(worst['first hit gives the valid value'])} of the questions ([diaries](#diaries))."
    )
    hardest = min(of.rows("offline_corpora", half="held out"), key=lambda row: row["right_or_passage"])
    chain = min(of.rows("consolidation"), key=lambda row: row["accuracy"])
    yield (
        "**Without a model, most questions are not answered.** On LoCoMo, the offline model abstains from"
        f" {_percent(of.fact('offline_answers', 'share abstained if there is one'))} of the questions that have an"
        f" answer ([answers](#answers-of-the-offline-model)). On *{hardest['set']}*, it is right for"
        f" {_percent(hardest['right'])}, and shows the answer for {_percent(hardest['right_or_passage'])} ([other"
        f" text](#the-offline-model-on-other-text)). On PersonaMem, it scores"
        f" {shown(of.one('answers', 'score', set='personamem', system='offline'))}, plain search"
        f" {shown(of.one('answers', 'score', set='personamem', system='search-only'))} ([public"
        f" sets](#answers-on-public-sets)). Of questions that need a chain of statements, it answers"
        f" {_percent(chain['accuracy'])} of the hardest set ([facts](#facts-that-change))."
    )
    models = [row for row in of.rows("small_models") if row["model"] != "offline"]
    yield (
        f"**Very small models gain little**: at most {max(row['right'] for row in models)} of"
        f" {models[0]['answerable']} answers are right (offline model:"
        f" {of.one('small_models', 'right', model='offline')}), at"
        f" {shown(min(row['seconds_per_question'] for row in models))} seconds or more each ([small"
        " models](#small-models))."
    )
    behind = sorted(
        {
            ours["set"]
            for ours in of.rows("ranking", system="RLM-MEM")
            for other in of.rows("ranking", set=ours["set"])
            if "RLM-MEM" not in other["system"]
            and (other["recall@10"] > ours["recall@10"] or other["nDCG@10"] > ours["nDCG@10"])
        }
    )
    worse = [
        row["set"] for row in of.rows("ranking_fit") if row["without: nDCG@10"] < row["base only: nDCG@10"]
    ]
    yield (
        f"**Ranking is not better everywhere.** A baseline finds more, or orders it better, on"
        f" {' and '.join(behind) or 'no set'}. Weights that were learned from other sets order"
        f" {' and '.join(worse) or 'no set'} slightly worse than words and dates alone ([ranking](#ranking))."
        " Learned representations were not compared in this run."
    )


def _limits_of_speed(of: Results, shown: Callable[[object], str]) -> Iterable[str]:
    ranked = {
        system: [row["CPU p50 ms"] for row in of.rows("ranking", system=system)]
        for system in ("RLM-MEM", "SQLite FTS5")
    }
    taken = {system: f"{shown(min(times))} to {shown(max(times))} ms" for system, times in ranked.items()}
    small = min(of.rows("search_scale"), key=lambda row: row["chunks"])
    database = min(of.rows("postgres_search"), key=lambda row: row["chunks"])
    yield (
        f"**A search costs processor time**: {taken['RLM-MEM']} on the sets of [ranking](#ranking), where SQLite FTS5"
        f" takes {taken['SQLite FTS5']}. With {shown(small['chunks'])} chunks, FTS5 with the four best words takes"
        f" {shown(small['FTS5, best words, p50'])} ms against {shown(small['RLM-MEM p50'])} ([search at"
        f" size](#search-at-size)), PostgreSQL's own search {shown(database['built-in p50'])} ms against"
        f" {shown(database['search p50'])} ([PostgreSQL](#on-postgresql))."
    )
    peers = _largest_peers(of)
    ours, plain = peers["RLM-MEM, Python"], peers["LangGraph SqliteStore"]
    yield (
        f"**Writing is slower than to a plain database**: {shown(ours['add p50'])} ms for one memory against"
        f" {shown(plain['add p50'])} ms of LangGraph's store, {shown(ours['bulk insert, memories/s'])} memories a"
        f" second in bulk against {shown(plain['bulk insert, memories/s'])}, and {shown(ours['disk MB'])} MB on disk"
        f" against {shown(plain['disk MB'])}, all measured with an earlier version ([other"
        " memories](#compared-with-other-memories))."
    )
    large = max(of.rows("growth", store="local"), key=lambda row: row["chunks"])
    yield (
        f"**Maintenance takes long in a large memory**: with {shown(large['chunks'])} chunks, {shown(large['check s'])}"
        f" s to check it and {shown(large['rebuild s'])} s to rebuild its index ([growth](#growth))."
    )
    [calls] = of.rows("sandbox", operation="1,000 host calls", engine="monty")
    missed = (
        f" 1,000 calls from a program take {shown(calls['p50_ms'])} ms, the target is {shown(calls['target_ms'])}"
        " ([sandbox](#the-sandbox))."
        if calls["p50_ms"] > calls["target_ms"]
        else ""
    )
    yield (
        f"**The default engine is not all of Python**: it runs"
        f" {of.one('engines', 'programs that run', engine='monty')} everyday programs"
        f" ([engines](#the-engines-side-by-side)).{missed}"
    )
    slowest = min(
        (row for row in of.rows("pages") if "performance" in row), key=lambda row: row["performance"]
    )
    yield (
        f"**One page is slow**: {slowest['page']} has a performance score of {slowest['performance']} out of 100"
        " ([pages](#pages-of-the-site-and-the-dashboard))."
    )
    times = of.fact("cluster", "Time relative to one PostgreSQL server").values()
    yield (
        f"**A cluster is slow**: operations take {shown(min(times))} to {shown(max(times))} times as long as on one"
        " PostgreSQL server ([cluster](#a-cluster))."
    )


def _limits_of_measuring(of: Results, shown: Callable[[object], str]) -> Iterable[str]:
    marks = [row["mark"] for row in of.rows("host_trial") if row["set"] == "BEAM 100K" and row["round"] >= 30]
    yield (
        "**Answers by a strong model cannot be measured again.** The trial (mean marks of"
        f" {shown(min(marks))} to {shown(max(marks))} in the last rounds) was answered and marked by models, by hand"
        " ([trial](#a-trial-by-hand)). The benchmark that can be repeated had neither a model nor, for BEAM, a judge"
        " ([public sets](#answers-on-public-sets))."
    )
    yield (
        "**The machine is small and was often busy.** It has two cores; where the load below a table is above 2,"
        " processes waited for a core: compare such times only within their table."
    )


def _largest_peers(of: Results) -> dict[str, dict[str, Any]]:
    """The row of each memory system with the most memories, by its name."""
    most = max(row["memories"] for row in of.rows("peers"))
    return {row["memory"]: row for row in of.rows("peers", memories=most)}

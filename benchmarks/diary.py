"""A year of a diary with planted changes: what the memory answers after each of them, and what it replaced by itself.

Each entry of a corpus plants a statement and, weeks or months later, another one (`newer`): `change` says itself
what changed, `review` does not, and `trap` is about something else, a plan or hearsay and changes nothing. Between them
stand everyday notes. The rules were written with `diary.jsonl`. `diary_apart.jsonl` was written in other words; it was
corrected after its first result, and the rules were mended on kinds that it had shown: it is no longer unseen.
`diary_second.jsonl` was written afterwards, in other words again, asked once, and later opened for development, too.

`diary_open.jsonl` and `diary_closed.jsonl` are halves of one corpus: changes of work, of private life and of
software, and as many pairs that only look like one, in the wordings of public change logs, notices and diaries with
other subjects. It was split by the SHA-256 of the earlier statement, in turns within each kind, before any rule was
changed on it. The rules were mended on the open half; the closed half was asked once, after that. It was opened
then, and is no longer unseen.

`diary_third.jsonl` is the open half of a corpus whose author had not read the rules: notes of a household, a software
team, a clinic, a school, a workshop and clubs, as many different people write them. It was split in the same way. Its
closed half, `diary_fourth.jsonl`, was kept apart until the rules had been mended on the open one, and asked once, after
the last of them. It was opened later, and questions about the look-alikes of both halves were added.

`diary_fifth.jsonl` is the open half of a corpus written before its author looked at what the rules missed: 120 changes
of many kinds, stated directly, by a pronoun, in a list, in passing, in a title, as a correction, in four languages, and
120 pairs that are none, with a question whose answer is still the earlier one. Its closed half, `diary_sixth.jsonl`,
was asked once, in the same way, and opened then.

`diary_seventh.jsonl` is the open half of a corpus whose author had read neither the rules nor their misses: 102
changes and 100 pairs that are none. It adds changes of a part, of a name, of a unit and of a plan, and chains of three,
in which `first` is an even earlier statement. It was split by the SHA-256 of the question; its closed half,
`diary_eighth.jsonl`, was asked once, after the rules had been mended on the open one.

`diary_ninth.jsonl` is the open half of one more, by an author who had read neither the rules nor any misses: notes of
households, clinics, teams, workshops, schools, clubs, farms and firms, a quarter in German, Spanish and French. It was
split by the SHA-256 of the question and asked once before any rule was changed on it. Its closed half,
`diary_tenth.jsonl`, was asked once, after the rules had been mended on the open one, and opened then.

`diary_eleventh.jsonl` and `diary_twelfth.jsonl` are halves of one more corpus by such an author, with archives,
musicians and travellers among the writers, and were treated in the same way. `diary_thirteenth.jsonl` and
`diary_fourteenth.jsonl` are halves of the next one, whose author again had read neither rules nor misses.
Rules were later mended on the look-alikes of all corpora, this closed half among them: none of these is unseen.

`diary_fifteenth.jsonl` and `diary_sixteenth.jsonl` are halves of one more corpus by such an author: chats, minutes of
meetings, logs, lists and e-mails, a quarter in seven other languages. No rule was changed on either before they were
asked; later, rules for plain words of change were mended on them, too.

`diary_seventeenth.jsonl` and `diary_eighteenth.jsonl` are halves of a year of one person and of an agent on a project,
written before the rules were looked at: things that change twice, changes that are called off, changes of one of two
similar things, plans and quotations, a quarter in German and French, among ordinary notes in the same words (`note`).
`aside` is one more later note on a change, `then` a question as of a day between. They were split by the SHA-256 of the
question, in turns within each kind; the closed half was asked once, after the rules had been mended on the open one.
Later every outdated hit of all corpora was looked at, and rules were mended on them, this closed half among them.

In notes among which little changes, the same rules can only do harm, except for the few that do change: for the sets
of notes of `offline_corpora.py`, the first hit of a search is compared with that by words alone.

    python benchmarks/diary.py             all
    python benchmarks/diary.py --quick     the corpus for development only; records nothing
"""

from __future__ import annotations

import json
import random
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from offline_corpora import Asked, questions, remember
from rlm_mem import Hit, Memory
from rlm_mem.search import ranked_ids
from support import Report, arguments

CORPORA = Path(__file__).parent / "corpora"
DIARIES = (
    ("development", "diary.jsonl"),
    ("held out", "diary_apart.jsonl"),
    ("held out, second", "diary_second.jsonl"),
    ("found wordings, open half", "diary_open.jsonl"),
    ("found wordings, closed half", "diary_closed.jsonl"),
    ("many writers, open half", "diary_third.jsonl"),
    ("many writers, closed half", "diary_fourth.jsonl"),
    ("many kinds, open half", "diary_fifth.jsonl"),
    ("many kinds, closed half", "diary_sixth.jsonl"),
    ("many attributes, open half", "diary_seventh.jsonl"),
    ("many attributes, closed half", "diary_eighth.jsonl"),
    ("many trades, open half", "diary_ninth.jsonl"),
    ("many trades, closed half", "diary_tenth.jsonl"),
    ("many hands, open half", "diary_eleventh.jsonl"),
    ("many hands, closed half", "diary_twelfth.jsonl"),
    ("many places, open half", "diary_thirteenth.jsonl"),
    ("many places, closed half", "diary_fourteenth.jsonl"),
    ("many forms, open half", "diary_fifteenth.jsonl"),
    ("many forms, closed half", "diary_sixteenth.jsonl"),
    ("changed twice, open half", "diary_seventeenth.jsonl"),
    ("changed twice, closed half", "diary_eighteenth.jsonl"),
)
ORDINARY = ("notes", "projects", "agents", "trades", "desks")
"""Sets of notes among which little changes."""
UNSEEN = "worlds"
"""One more such set, on which nothing was fitted; the limits of "in passing" were later set on what it and the others
showed."""
_FIRST_DAY = date(2025, 1, 1)
_DAYS = 365
_BETWEEN = (_FIRST_DAY + timedelta(days=180)).isoformat()
"""A day after every earlier statement and before every later one."""
_SEEN = 3
"""Number of hits that whoever asks is taken to read."""
_NOTES = (
    "Rain until {n} o'clock, then a walk by the canal.",
    "Cooked lentils for {n} people, far too salty.",
    "Repaired the gutter; {n} screws were missing.",
    "Watched a film about bees, fell asleep after {n} minutes.",
    "Called the plumber, he comes in {n} days.",
    "Ran {n} kilometres along the dyke.",
    "Planted {n} tulips behind the shed.",
    "Meeting about the audit, {n} open questions.",
    "Merged {n} pull requests, closed the old ones.",
    "Lost at cards again, {n} to nothing.",
)


def share(part: int, whole: int) -> float | None:
    """A share, rounded; None of nothing."""
    return round(part / whole, 3) if whole else None


def entries(rows: list[dict[str, str]], seed: int) -> list[tuple[date, str]]:
    """The diary: planted statements in the first half of the year, what came later in the second, notes every day."""
    chance = random.Random(seed)
    found = [
        (
            _FIRST_DAY + timedelta(days=day),
            chance.choice(_NOTES).format(n=chance.randrange(2, 40)) + f" ({day})",
        )
        for day in range(_DAYS)
    ]
    for row in rows:
        if row["kind"] == "note":
            found.append((_FIRST_DAY + timedelta(days=chance.randrange(_DAYS)), row["note"]))
            continue
        found.append((_FIRST_DAY + timedelta(days=chance.randrange(0, 170)), row["older"]))
        found.append((_FIRST_DAY + timedelta(days=chance.randrange(190, _DAYS)), row["newer"]))
        if "aside" in row:
            found.append((found[-1][0] + timedelta(days=chance.randrange(5, 25)), row["aside"]))
        if "first" in row:
            found.append((_FIRST_DAY - timedelta(days=chance.randrange(30, 120)), row["first"]))
    return sorted(found, key=lambda one: one[0])


def later_notes(hit: Hit) -> set[str]:
    """The ids of the later notes that a hit quotes."""
    return {note.chunk_id for which, note in hit.other_notes() if which != "earlier"}


def is_silent(hits: list[Hit], older: str, newer: str) -> bool:
    """Whether the hits have the older note, and neither the newer one nor a mark that names it."""
    told = [hit for hit in hits if hit.chunk_id == older]
    named = {later for hit in told for later in later_notes(hit)}
    return bool(told) and newer not in named | {hit.chunk_id for hit in hits}


def has_value(hits: list[Hit], value: str) -> bool:
    """Whether the value in force can be read in the first hit, as agents are given it."""
    return bool(hits) and value.lower() in hits[0].marked_snippet().lower()


def measured(rows: list[dict[str, str]], seed: int, shown: dict[str, Any] | None = None) -> dict[str, Any]:
    """One corpus, remembered day by day and then asked.

    Args:
        shown: takes what was stale, not replaced or replaced wrongly.
    """
    planted = {row[key] for row in rows for key in ("first", "older", "newer", "aside") if key in row}
    with tempfile.TemporaryDirectory() as place, Memory.open(Path(place) / "brain") as memory:
        ids: dict[str, str] = {}
        named: set[tuple[str, str]] = set()
        diary = entries(rows, seed)
        for day, text in diary:
            made = memory.remember(text, occurred_at=day.isoformat())
            if text in planted:
                ids[text] = made.chunk_ids[0]
                named.update((made.chunk_ids[0], hit.chunk_id) for hit in memory.earlier(made.chunk_ids[0]))
        replaced = {
            (chunk.id, link.target_id)
            for chunk in memory.store.iter_chunks()
            for link in chunk.links
            if link.type == "supersedes"
        }
        chains = [row for row in rows if "first" in row]
        replaced -= {(ids[row[later]], ids[row["first"]]) for row in chains for later in ("older", "newer")}
        changes = [row for row in rows if row["kind"] == "change"]
        wanted = {(ids[row["newer"]], ids[row["older"]]) for row in changes}
        proposed = {tuple(case.chunk_ids) for case in memory.continuum.review.cases()}
        asked = {(ids[row["newer"]], ids[row["older"]]) for row in rows if row["kind"] == "review"}
        stale_first = stale_named = stale_answer = answered = silent = in_force = 0
        told: dict[str, list[str]] = {}
        for row in changes:
            first = memory.search(row["ask"], limit=_SEEN)
            silent += is_silent(first, ids[row["older"]], ids[row["newer"]])
            is_stale = bool(first) and first[0].chunk_id == ids[row["older"]]
            stale_first += is_stale
            stale_named += is_stale and ids[row["newer"]] in later_notes(first[0])
            in_force += has_value(first, row["now"])
            result = memory.recall(row["ask"])
            answer = result.content
            answered += row["now"].lower() in (answer or result.suggestion or "").lower()
            if answer and row["stale"].lower() in answer.lower() and row["now"].lower() not in answer.lower():
                stale_answer += 1
                is_stale = True
            if is_stale:
                told[row["newer"]] = [first[0].snippet if first else "", answer or ""]
        alike = [row for row in rows if "holds" in row]
        misled = alike_first = both = 0
        for row in alike:
            first = memory.search(row["ask"], limit=1)
            alike_first += bool(first) and first[0].chunk_id == ids[row["newer"]]
            in_force += has_value(first, row["holds"])
            answer = (memory.recall(row["ask"]).content or "").lower()
            both += row["other"].lower() in answer and row["holds"].lower() in answer
            if row["other"].lower() in answer and row["holds"].lower() not in answer:
                misled += 1
                told[row["newer"]] = ["", answer]
        if shown is not None:
            shown.update(told)
            shown["not replaced"] = sorted(
                row["newer"] for row in changes if (ids[row["newer"]], ids[row["older"]]) not in replaced
            )
            texts = {chunk_id: text for text, chunk_id in ids.items()}
            shown["wrongly"] = [[texts.get(one, one) for one in pair] for pair in sorted(replaced - wanted)]
        return {
            "entries": len(diary),
            "changes stated in the text": len(changes),
            "of these applied": len(replaced & wanted),
            "applied, or the outdated memory named to the agent": len((replaced | named) & wanted),
            "wrong replacements": len(replaced - wanted),
            "precision": share(len(replaced & wanted), len(replaced)),
            "other changes in review": share(len(proposed & asked), len(asked)),
            "stated changes in review": len(proposed & (wanted - replaced)),
            "cases in review": len(proposed),
            "outdated first hits": stale_first,
            "with the later note": stale_named,
            "outdated without a later note": silent,
            "first hit gives the valid value": share(in_force, len(changes) + len(alike)),
            "outdated answers": stale_answer,
            "new value given": share(answered, len(changes)),
            "look-alike questions": len(alike),
            "look-alike is the first hit": alike_first,
            "answered with the look-alike": misled,
            "answered with both": both,
            **_as_of(memory, [row for row in changes if "then" in row], ids),
        }


def _as_of(memory: Memory, rows: list[dict[str, str]], ids: dict[str, str]) -> dict[str, int]:
    """How many questions as of the day between get the statement that was in force then; nothing without such ones."""
    if not rows:
        return {}
    first = [memory.search(row["then"], limit=1, as_of=_BETWEEN) for row in rows]
    results = [memory.recall(row["then"], as_of=_BETWEEN) for row in rows]
    answers = [(result.content or "").lower() for result in results]
    suggested = [(result.content or result.suggestion or "").lower() for result in results]
    former = [row["stale"].lower() for row in rows]
    return {
        "questions as of a day": len(rows),
        "right first hit as of it": sum(
            bool(hits) and hits[0].chunk_id == ids[row["older"]]
            for row, hits in zip(rows, first, strict=True)
        ),
        # The value may be given without the words around it that tell it from the later one: "Ines" of "Ines is".
        "right answer as of it": sum(
            bool(answer) and (value in answer or answer in value)
            for value, answer in zip(former, answers, strict=True)
        ),
        "right answer or suggestion as of it": sum(
            bool(given) and (value in given or given in value)
            for value, given in zip(former, suggested, strict=True)
        ),
    }


def ordinary(name: str) -> dict[str, Any]:
    """The first hits for the questions of a set of notes, by the words alone and by all rules."""
    notes, asked = questions(name)
    pairs = [
        pair
        for store in dict.fromkeys(note.store for note in notes)
        for pair in _first_hits(name, store, [one for one in asked if one.store == store and one.answers])
    ]
    return {
        "questions": len(pairs),
        "right first hit by words alone": sum(by_words for by_words, _ in pairs),
        "right first hit": sum(right for _, right in pairs),
        "moved behind another note": sum(by_words and not right for by_words, right in pairs),
    }


def _first_hits(name: str, store: str, asked: list[Asked]) -> list[tuple[bool, bool]]:
    """For each question, whether the first hit by words alone answers it, and whether that of a search does."""
    with tempfile.TemporaryDirectory() as place, Memory.open(Path(place) / "brain") as memory:
        remember(name, memory, [], store)

        def answers(one: Asked, ids: list[str]) -> bool:
            return any(
                one.is_answered_by(memory.store.get_chunk(found, track=False).content) for found in ids
            )

        return [
            (
                answers(one, [found for found, _ in ranked_ids(memory.store, one.question, limit=1)]),
                answers(one, [hit.chunk_id for hit in memory.search(one.question, limit=_SEEN)[:1]]),
            )
            for one in asked
        ]


def main() -> None:
    """Each corpus by itself."""
    options = arguments(__doc__ or "").parse_args()
    report = Report("diary", "A year of a diary with planted changes")
    for name, file in DIARIES[: 1 if options.quick else None]:
        rows = [json.loads(line) for line in (CORPORA / file).read_text(encoding="utf-8").splitlines()]
        report.add(corpus=name, **measured(rows, seed=len(name)))
    for name in () if options.quick else (*ORDINARY, UNSEEN):
        report.add(set=name, **ordinary(name))
    if options.quick:
        print(report)
    else:
        report.finish(options.output)


if __name__ == "__main__":
    main()

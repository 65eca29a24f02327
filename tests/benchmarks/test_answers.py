"""The harness for answers: small made-up sets in each format, scripted models, and a run that is killed."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.errors import ModelUnavailable
from rlm_mem.models.scripted import ScriptedLLM
from tests.house.sources import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from answers import running
from answers.answering import stem
from answers.command import main
from answers.report import NOT_MEASURED, markdown, plot, rows
from answers.scoring import chosen, held, judged, mark_of, prompt, token_f1
from answers.sets import SETS, Case, load_set, sample

CHAT = [
    {"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a grey cat called Pixel last week."},
    {"speaker": "Ben", "dia_id": "D1:2", "text": "Lovely! I started to learn the cello in Graz."},
]
QA = [
    {"question": "What is Ana's cat called?", "answer": "Pixel", "evidence": ["D1:1"], "category": 4},
    {"question": "What does Ben learn?", "answer": "the cello", "evidence": ["D1:2"], "category": 4},
    {"question": "What is Ben's dog called?", "evidence": [], "category": 5, "adversarial_answer": "Rex"},
]
OPTIONS = "(a) A walk by the sea.\n(b) A cello concert in Graz.\n(c) A football match.\n(d) A cooking class."


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small file of each set."""
    place = tmp_path_factory.mktemp("data")
    for name in ("locomo", "beam", "factconsolidation", "personamem"):
        (place / name).mkdir()
    locomo = {"speaker_a": "Ana", "speaker_b": "Ben", "session_1": CHAT, "qa": QA}
    locomo["session_1_date_time"] = "1:56 pm on 8 May, 2023"
    (place / "locomo" / "1.json").write_text(json.dumps(locomo))
    turn = {
        "role": "user",
        "id": 0,
        "time_anchor": "March-15-2024",
        "content": "My sprint ends on March 29. ->-> 1,1",
    }
    reply = {"role": "assistant", "id": 1, "content": "Noted."}
    asked = {
        "question": "When does my sprint end?",
        "answer": "March 29",
        "rubric": ["states March 29", "is short"],
    }
    beam = {"chat": [{"batch_number": 1, "turns": [[turn, reply]]}]}
    packed(place / "beam" / "t.json.gz", {**beam, "probing_questions": {"information_extraction": [asked]}})
    facts = {"context": "Here is a list of facts:\n0. Lisbon is in Spain.\n1. Lisbon is in Portugal."}
    facts |= {
        "questions": ["In which country is Lisbon?"],
        "answers": [["Portugal", "the Portuguese Republic"]],
    }
    (place / "factconsolidation" / "sh.json").write_text(json.dumps(facts))
    document = {
        "id": "u_0",
        "user_id": "u",
        "timestamp": None,
        "content": "[USER] User: I love the cello, and Graz.",
    }
    query = {"id": "q", "query": f"User: Kim\n\nWhere shall I go tonight?\n\n{OPTIONS}", "user_id": "u"}
    query |= {"gold_answers": ["(b) A cello concert in Graz.", "b"], "meta": {"question_type": "recall"}}
    packed(place / "personamem" / "half.json.gz", {"documents": [document], "queries": [query]})
    return place


def packed(path: Path, value: Any) -> None:
    path.write_bytes(gzip.compress(json.dumps(value).encode()))


def cases_of(name: str, data: Path) -> tuple[Case, ...]:
    return load_set(name, data).cases


def test_each_set_is_read_in_its_own_format(data: Path) -> None:
    assert [case.gold for case in cases_of("locomo", data)] == [("Pixel",), ("the cello",), ()]
    beam = load_set("beam", data)
    assert beam.corpora["t"].texts[0].text == "User: My sprint ends on March 29.\nAssistant: Noted."
    assert beam.corpora["t"].texts[0].at == "2024-03-15T00:00:00+00:00"
    assert beam.cases[0].rubric == ("states March 29", "is short")
    assert cases_of("facts", data)[0].gold == ("Portugal", "the Portuguese Republic")
    (choice,) = cases_of("personamem", data)
    assert choice.gold == ("b",)
    assert choice.options["b"] == "A cello concert in Graz."
    assert stem(choice) == "Where shall I go tonight?"
    with pytest.raises(FileNotFoundError):
        load_set("facts", data / "nowhere")


def test_a_sample_is_the_same_every_time_and_even_over_kinds() -> None:
    cases = tuple(Case(f"x/{number}", "facts", "ab"[number > 2], "c", "?") for number in range(20))
    first = sample(cases, 6)
    assert first == sample(tuple(reversed(cases)), 6)
    assert sorted(case.kind for case in first) == list("aaabbb")


def test_scores_follow_the_rules_of_the_sets(data: Path) -> None:
    assert token_f1("The cello!", "a cellos") == 1.0
    assert token_f1("cello in Graz", "cello") == pytest.approx(0.5)
    (choice,) = cases_of("personamem", data)
    said = {
        "(b)": "b",
        "B.": "b",
        "b": "b",
        "Not (a), I take (c)": "c",
        "answer: d": "d",
        "beach": None,
        "": None,
        "z": None,
    }
    assert {text: chosen(choice, text) for text in said} == said
    cat, _, dog = cases_of("locomo", data)
    assert [running_score(dog, text) for text in (None, "Not mentioned.", "Rex")] == [1.0, 1.0, 0.0]
    assert [running_score(cat, text) for text in (None, "Pixel", "Rex")] == [0.0, 1.0, 0.0]
    assert held(cat, "a cat named pixel")
    assert held(cat, "a cat") is False
    assert held(dog, "Rex") is None
    assert running_score(cases_of("facts", data)[0], "It is in PORTUGAL now") == 1.0
    assert running_score(cases_of("beam", data)[0], "March 29") is None


def running_score(case: Case, answer: str | None) -> float | None:
    from answers.scoring import figures

    score: float | None = figures(case, answer, "")["score"]
    return score


def test_marks_of_judges_are_kept_separately_and_a_rubric_gives_a_mean(data: Path) -> None:
    asked: list[str] = []

    def ask(text: str) -> str:
        asked.append(text)
        return {0: "1", 1: "Mark: 0.", 2: "I would say so"}.get(len(asked) - 1, "0.5")

    cat = cases_of("locomo", data)[0]
    assert judged(cat, "Pixel {gold}", ask) == {"strict": 1.0, "lenient": 0.0, "graded": None}
    assert len(set(asked)) == 3
    assert all("Pixel {gold}" in text for text in asked), "an answer is never taken for a field"
    assert judged(cases_of("beam", data)[0], "March 29", ask) == {"rubric": 0.5}
    assert [mark_of(text) for text in ("1", "so\n0.25", "7", "", "10")] == [1.0, 0.25, None, None, None]
    assert "{" not in prompt("read", passages="p", task="t")


def test_all_systems_run_without_a_model_and_the_report_names_missing_figures(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    assert (
        main(["run", "--data", str(data), "--out", str(out), "--llm", "offline", "search-only", "fts5"]) == 0
    )
    found = {(row["set"], row["system"]): row for row in rows(out)}
    assert len(found) == len(SETS) * 3
    assert all(row["questions"] == len(cases_of(row["set"], data)) for row in found.values())
    assert found["locomo", "offline"]["score"] > 0.6
    assert found["personamem", "search-only"]["score"] == 1.0
    assert found["beam", "offline"]["score"] == NOT_MEASURED
    assert found["facts", "fts5"]["judge strict"] == NOT_MEASURED
    assert found["facts", "fts5"]["failures"] == 0
    assert (
        main(
            [
                "report",
                "--out",
                str(out),
                "--plot",
                str(tmp_path / "a.svg"),
                "--markdown",
                str(tmp_path / "a.md"),
            ]
        )
        == 0
    )
    assert "| offline |" in (tmp_path / "a.md").read_text()
    assert (tmp_path / "a.svg").read_text().count("<circle") == 3 * 3 + 3
    with pytest.raises(SystemExit, match="was begun with"):
        main(["run", "--data", str(data), "--out", str(out), "--llm", "offline", "--sample", "1"])
    assert plot([])
    assert markdown([], {})


def test_a_killed_run_is_resumed_and_counts_no_question_twice(data: Path, tmp_path: Path) -> None:
    loaded = {name: load_set(name, data) for name in ("locomo", "facts")}
    cases = [case for one in loaded.values() for case in one.cases]
    corpora = {name: one.corpora for name, one in loaded.items()}
    answered: list[str] = []

    class Killed(BaseException):
        pass

    def model(answers: int, ending: BaseException) -> ScriptedLLM:
        def reply(messages: list[Any]) -> str:
            if len(answered) == answers:
                raise ending
            answered.append(messages[-1].content)
            return "```repl\nFINAL('Pixel')\n```"

        return ScriptedLLM(default=reply)

    with pytest.raises(Killed):
        running.run(cases, corpora, tmp_path, mode="scripted", llm=model(2, Killed()))
    path = tmp_path / "scripted" / "answers.jsonl"
    path.write_bytes(path.read_bytes() + b'{"id": "locomo/1/2", "sco')
    # The model is gone now: the rest is recorded as failed, and is asked again by the next run.
    lines = running.run(cases, corpora, tmp_path, mode="scripted", llm=model(2, ModelUnavailable("gone")))
    assert [row["error"] is None for row in lines.rows.values()] == [True, True, False, False]
    assert [row["score"] for row in lines.rows.values()][2:] == [None, None], "also where none is right"
    running.run(cases, corpora, tmp_path, mode="scripted", llm=model(99, Killed()))
    again = running.run(cases, corpora, tmp_path, mode="scripted", llm=model(0, Killed()))
    ids = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    assert ids == [case.id for case in cases]
    assert len(answered) == len(cases)
    assert all(
        row["error"] is None and row["calls"] == 1 and row["tokens_in"] > 0 for row in again.rows.values()
    )
    judging = iter(["1", "1", "0.5", "0"])

    def ask(_text: str) -> str:
        reply = next(judging, None)
        if reply is None:
            raise Killed
        return reply

    with pytest.raises(Killed):
        running.judge(cases, tmp_path / "scripted", ask)
    marks = running.judge(cases, tmp_path / "scripted", lambda _text: "1")
    assert marks.rows["locomo/1/0"] == {"id": "locomo/1/0", "strict": 1.0, "lenient": 1.0, "graded": 0.5}
    assert len(marks.rows) == len(cases)


def test_failures_count_as_failures_alone(data: Path, tmp_path: Path) -> None:
    loaded = load_set("locomo", data)
    gone = ScriptedLLM(default=lambda _messages: (_ for _ in ()).throw(ModelUnavailable("gone")))
    running.run(loaded.cases, {"locomo": loaded.corpora}, tmp_path, mode="scripted", llm=gone)
    running.settle(tmp_path / "scripted", {"system": "scripted"})
    (row,) = rows(tmp_path)
    assert row["failures"] == row["questions"] == len(loaded.cases)
    assert {row[name] for name in ("score", "evidence read", "abstained", "model calls", "usd")} == {
        NOT_MEASURED
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--llm", "no-such-model"], "no-such-model"),
        (["run", "--llm", "offline", "--data", "nowhere"], "nowhere"),
        (["report"], "there are no answers in"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_asked(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    given = [arguments[0], "--out", str(tmp_path)]
    given += ["--data", str(data)] if arguments[0] == "run" else []
    assert main([*given, *arguments[1:]]) == 1
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not list(tmp_path.glob("*/answers.jsonl"))


def test_a_reader_answers_from_passages_and_its_cost_is_counted(data: Path, tmp_path: Path) -> None:
    loaded = load_set("facts", data)
    reader = ScriptedLLM(["Portugal"])
    lines = running.run(
        loaded.cases,
        {"facts": loaded.corpora},
        tmp_path,
        mode="fts5",
        reader=reader,
        reader_name="openai:x/y",
    )
    (row,) = lines.rows.values()
    assert (row["answer"], row["score"], row["held"], row["calls"]) == ("Portugal", 1.0, True, 1)
    assert row["tokens_in"] > 20
    assert lines.path.parent.parent == tmp_path


def test_an_agent_answers_through_files_without_the_right_answers(data: Path, tmp_path: Path) -> None:
    given = ["--data", str(data), "--out", str(tmp_path), "--set", "facts", "locomo"]
    assert main(["tasks", *given]) == 0
    tasks = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert all(set(task) == {"id", "brain", "question"} for task in tasks)
    assert all((Path(task["brain"]) / "memory").is_dir() for task in tasks)
    said = {"facts/sh/0": "Portugal", "locomo/1/0": "Pixel", "locomo/1/1": None, "locomo/1/2": None}
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({"id": one, "answer": text}) + "\n" for one, text in said.items()))
    assert main(["take", *given, "--name", "agent", "--answers", str(answers)]) == 0
    found = {row["set"]: row for row in rows(tmp_path)}
    assert found["facts"]["score"] == 1.0
    assert found["locomo"]["score"] == pytest.approx(2 / 3, abs=0.001)
    assert found["locomo"]["input tokens"] == found["locomo"]["usd"] == NOT_MEASURED
    answers.write_text('{"id": "x"}\nnonsense\n[]\n{"id": "facts/sh/0", "answer": 3}\n')
    assert main(["take", *given, "--name", "other", "--answers", str(answers)]) == 1

"""The loop with a simulated session: what goes back to the model, and how a run ends."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from rlm_mem.config import Config
from rlm_mem.errors import BudgetError, ModelOverloaded, ProgramError, SandboxViolation
from rlm_mem.models.base import Budget, Completion, Limits, Usage
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall.loop import Loop, LoopResult, LoopStep, Turns
from rlm_mem.recall.opening import Opening
from rlm_mem.sandbox.arguments import TruncatedLists
from rlm_mem.sandbox.functions import FUNCTIONS
from rlm_mem.sandbox.pages import Pages
from rlm_mem.sandbox.values import Final, HostCall, StepOutput


class FakeSession:
    """Answers each program with the next of its outputs; a program that calls FINAL concludes."""

    def __init__(self, *outputs: StepOutput | BudgetError, config: Config | None = None) -> None:
        self.config = config or Config.load(None, llm={"max_tokens": 1024})
        self.final: Final | None = None
        self.pages = Pages()
        self.cut_lists = TruncatedLists()
        self.functions = FUNCTIONS
        self.last_step: StepOutput | None = None
        self.programs: list[str] = []
        self._outputs = list(outputs)

    def run(self, code: str, timeout: float | None = None) -> StepOutput:
        self.programs.append(code)
        if "FINAL" in code:
            self.final = Final("done", ["chunk-a"], 0.5)
            self.last_step = StepOutput()
            return self.last_step
        result = self._outputs.pop(0) if self._outputs else StepOutput(printed="nothing new")
        if isinstance(result, BudgetError):
            self.last_step = StepOutput(printed="half", chunks_read=["chunk-half"])
            raise result
        self.last_step = result
        return result


def run(session: Any, llm: ScriptedLLM, budget: Budget | None = None, **more: Any) -> LoopResult:
    of_loop = {name: more.pop(name) for name in ("system", "hands_over", "untrusted") if name in more}
    return Loop(Turns(session, llm, Opening("Who won?"), budget or Budget(), **more), **of_loop).run()


def block(code: str) -> str:
    return f"```repl\n{code}\n```"


FINISH = block("FINAL('done')")


def last_message(llm: ScriptedLLM) -> str:
    return llm.prompts[-1][-1].content


def test_output_goes_back_and_the_run_ends_with_final() -> None:
    llm = ScriptedLLM([block("print(1)"), FINISH])
    result = run(FakeSession(StepOutput(printed="ONE", chunks_read=["chunk-x"])), llm)
    assert "ONE" in last_message(llm)
    assert (result.answer, result.concluded, result.stopped_by) == ("done", True, None)
    assert (result.chunk_ids, result.confidence) == (("chunk-a",), 0.5)
    assert result.evidence == ("chunk-x",)
    assert [step.final for step in result.steps] == [False, True]


def test_the_value_of_a_last_expression_counts_as_printed() -> None:
    llm = ScriptedLLM([block("1 + 1"), FINISH])
    run(FakeSession(StepOutput(value=2, printed="before\n")), llm)
    assert "before\n2\n" in last_message(llm)


@pytest.mark.parametrize(
    ("error", "parts"),
    [
        (
            ProgramError("line 3: KeyError: 'text'", line=3, kind="KeyError", hint="print the keys"),
            ["line 3", "KeyError", "Hint: print the keys"],
        ),
        (SandboxViolation("line 1: import os is not allowed", line=1), ["line 1: import os"]),
        (ProgramError("odd", hint="do this instead"), ["odd", "Hint: do this instead"]),
    ],
)
def test_an_error_goes_back_with_its_line_and_a_hint(error: ProgramError, parts: list[str]) -> None:
    llm = ScriptedLLM([block("bad"), FINISH])
    result = run(FakeSession(StepOutput(printed="so far", error=error)), llm)
    for part in [*parts, "so far"]:
        assert part in last_message(llm)
    assert result.concluded
    assert result.steps[0].error == str(error)


def test_several_blocks_run_in_order_up_to_the_first_error() -> None:
    llm = ScriptedLLM(["\n".join(map(block, ["a", "b", "c"])), FINISH])
    session = FakeSession(StepOutput(printed="A"), StepOutput(printed="B", error=ProgramError("broken")))
    result = run(session, llm)
    assert [program.strip() for program in session.programs] == ["a", "b", "FINAL('done')"]
    assert result.steps[0].output == "A\nB"


def test_an_answer_that_was_written_before_the_output_was_read_is_not_taken() -> None:
    asking, early = block("print(search('tea'))"), block("FINAL('tea', chunk_ids=['chunk-a'])")
    session = FakeSession(StepOutput(printed="green tea"))
    llm = ScriptedLLM([f"{asking}\nThen:\n{early}", early])
    result = run(session, llm)
    assert "green tea" in last_message(llm) and "before the output of this reply was read" in last_message(
        llm
    )
    assert (result.concluded, len(result.steps)) == (True, 2)
    computed, silent = block("FINAL(found)"), FakeSession(StepOutput())
    assert len(run(FakeSession(StepOutput(printed="green")), ScriptedLLM([asking + computed])).steps) == 1
    assert len(run(silent, ScriptedLLM([asking + early])).steps) == 1, "nothing was printed"


def test_prose_is_answered_with_how_to_answer_and_never_taken_for_a_conclusion() -> None:
    llm = ScriptedLLM(["It is 42.", "The final answer is 42.", FINISH])
    result = run(FakeSession(), llm)
    assert "held no program" in llm.prompts[1][-1].content
    assert "No program again" in llm.prompts[2][-1].content
    assert result.answer == "done"
    assert len(result.steps) == 3


def test_a_model_that_never_writes_a_program_ends_with_its_iterations() -> None:
    budget = Budget(Limits(iterations=3))
    result = run(FakeSession(), ScriptedLLM(default="I cannot do that."), budget)
    assert (result.answer, result.concluded, result.stopped_by) == (None, False, "iterations")
    assert len(result.steps) == 3


def test_a_reply_that_was_cut_off_gets_a_notice() -> None:
    cut = Completion("let me think " * 10, Usage(5, 5), finish_reason="length")
    llm = ScriptedLLM([cut, FINISH])
    run(FakeSession(), llm)
    assert "cut off" in last_message(llm)


def test_what_a_program_did_before_its_budget_ended_is_kept() -> None:
    session = FakeSession(BudgetError("no money left", stopped_by="usd"))
    result = run(session, ScriptedLLM([block("read")]))
    assert result.stopped_by == "usd"
    assert result.evidence == ("chunk-half",)
    assert result.steps[0].output == "half"
    assert result.steps[0].error == "no money left"


def test_the_prompt_of_the_last_turn_says_so() -> None:
    llm = ScriptedLLM(default=block("x"))
    run(FakeSession(), llm, Budget(Limits(iterations=3)))
    assert "2 turns left" in llm.prompts[1][-1].content
    assert "last turn" in llm.prompts[2][-1].content


def test_long_output_is_cut_with_a_notice() -> None:
    llm = ScriptedLLM([block("x"), FINISH])
    result = run(
        FakeSession(
            StepOutput(printed="y" * 100_000), config=Config.load(None, sandbox={"max_output_chars": 1000})
        ),
        llm,
    )
    assert "page 1 of 114, 100,000 characters in all; print(page(2)) shows the next" in last_message(llm)
    assert len(last_message(llm)) < 1500
    assert result.steps[0].truncated


def test_a_steps_record_holds_what_was_spent_and_called() -> None:
    completion = Completion(block("x"), Usage(100, 20), model="m", seconds=1.5, cost=Decimal("0.01"))
    call = HostCall("read_chunk", "'chunk-x'", 0.1, "{…}")
    seen: list[LoopStep] = []
    budget = Budget()
    run(
        FakeSession(StepOutput(printed="o", host_calls=[call], chunks_read=["chunk-x"], seconds=0.2)),
        ScriptedLLM([completion, FINISH]),
        budget,
        on_step=seen.append,
    )
    step = seen[0]
    assert (step.usage, step.cost, step.model, step.model_seconds) == (
        Usage(100, 20),
        Decimal("0.01"),
        "m",
        1.5,
    )
    assert (step.prompt_tokens, step.program_seconds) == (100, 0.2)
    assert step.prompt_chars > 1000
    assert step.host_calls == ({"name": "read_chunk", "args": "'chunk-x'", "result": "{…}", "seconds": 0.1},)
    assert budget.spent().model_calls == 2


def test_a_model_error_passes_through_and_leaves_the_call_counted() -> None:
    budget = Budget()
    with pytest.raises(ModelOverloaded):
        run(FakeSession(), ScriptedLLM([ModelOverloaded("busy")]), budget)
    assert budget.spent().model_calls == 1


def test_the_reply_is_asked_for_within_the_tokens_that_are_left() -> None:
    llm = ScriptedLLM(default=Completion(block("x"), Usage(1500, 100)))
    result = run(FakeSession(), llm, Budget(Limits(tokens=3000)))
    assert result.stopped_by == "tokens"
    asked = [options["max_tokens"] for options in llm.options]
    assert asked[0] == 1024
    assert asked[1] < 1000
    assert len(asked) == 2


def test_no_call_is_given_more_time_than_the_run_has_left() -> None:
    llm = ScriptedLLM([FINISH])
    run(FakeSession(), llm, Budget(Limits(seconds=5)))
    timeout = llm.options[0]["timeout"]
    assert timeout is not None
    assert 0 < timeout <= 5


def test_the_text_of_the_model_streams_to_the_caller() -> None:
    pieces: list[str] = []
    run(FakeSession(), ScriptedLLM([FINISH]), on_text=pieces.append)
    assert "".join(pieces) == FINISH


def test_a_run_deeper_than_the_limit_asks_no_model() -> None:
    llm = ScriptedLLM()
    assert run(FakeSession(), llm, Budget(Limits(depth=1)), depth=2).stopped_by == "depth"
    assert llm.calls == 0

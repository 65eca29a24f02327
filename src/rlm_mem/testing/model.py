"""The contract of models, as pytest tests: completions with their usage, streaming, time-outs, errors."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rlm_mem.errors import InputError, ModelError
from rlm_mem.models import LLM, Completion, Message, Usage, adapt

_KEY = "contract-k3y-51f0a9c27d"
"""Set in the environment while a model is tested; no answer, name or error may repeat it."""


class ModelContract:
    """Tests of a model; a subclass provides the fixture ``model``, and ``failing_model`` if possible.

    Attributes:
        time_limit: seconds within which a call with a small ``timeout`` must return, even from a slow model.
    """

    time_limit = 10.0

    @pytest.fixture
    def model(self) -> LLM:
        """Return a model that answers any prompt with some text."""
        raise NotImplementedError("define the fixture `model` in your subclass of the suite")

    @pytest.fixture
    def failing_model(self) -> LLM | None:
        """Return a model whose every call fails, such as one without its server; None if there is none."""
        return None

    @pytest.fixture(autouse=True)
    def key_in_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """A key in the environment, like the keys of providers."""
        monkeypatch.setenv("CONTRACT_API_KEY", _KEY)
        yield

    def test_it_follows_the_protocol(self, model: LLM) -> None:
        """The model is used without a wrapper, and its name contains no key."""
        assert isinstance(model, LLM)
        assert adapt(model) is model
        assert model.name
        assert _KEY not in model.name + repr(model)

    def test_a_completion_has_text_usage_and_time(self, model: LLM) -> None:
        """Token counts are not negative and no part exceeds its total; the cost is not negative, or None."""
        began = time.monotonic()
        made = model.complete("Say a word.")
        elapsed = time.monotonic() - began
        assert isinstance(made, Completion)
        assert isinstance(made.text, str)
        assert isinstance(made.usage, Usage)
        usage = made.usage
        figures = (
            *(usage.input_tokens, usage.output_tokens, usage.cached_tokens),
            *(usage.reasoning_tokens, usage.cache_write_tokens),
        )
        assert all(isinstance(figure, int) and figure >= 0 for figure in figures)
        assert usage.input_tokens > 0
        assert usage.cached_tokens + usage.cache_write_tokens <= usage.input_tokens
        assert usage.reasoning_tokens <= usage.output_tokens
        assert 0 <= made.seconds <= elapsed + 0.5
        assert made.provider
        assert made.attempts >= 1
        assert made.cost is None or made.cost >= 0

    def test_a_conversation_is_taken_as_well_as_a_text(self, model: LLM) -> None:
        """Roles in any order and empty or unusual texts are accepted; an empty list and other types are refused."""
        made = model.complete(
            [
                Message("system", "Be brief."),
                Message("user", "Who won? 🏆 \0 \ud800"),
                Message("assistant", ""),
                Message("user", "Say it again."),
            ]
        )
        assert isinstance(made.text, str)
        for bad in ([], [{"role": "user", "content": "x"}]):
            with pytest.raises(InputError):
                model.complete(bad)  # type: ignore[arg-type]

    def test_options_that_it_cannot_follow_are_no_error(self, model: LLM) -> None:
        """Every option is accepted, and may be None."""
        made = model.complete(
            "x", max_tokens=200, temperature=0.0, stop=["STOP"], timeout=60.0, extra_body={}
        )
        assert isinstance(made, Completion)
        nothing = {"max_tokens": None, "temperature": None, "stop": None, "timeout": None, "on_text": None}
        assert isinstance(model.complete("x", **nothing), Completion)

    def test_text_arrives_by_on_text_whole_and_in_the_callers_thread(self, model: LLM) -> None:
        """The joined pieces are the answer, except for surrounding space; an exception of the callback is raised."""
        pieces: list[str] = []
        made = model.complete("Say a word.", on_text=pieces.append)
        assert "".join(pieces).strip() == made.text.strip()

        class Stop(Exception):
            pass

        def stop(_piece: str) -> None:
            raise Stop

        if made.text:
            with pytest.raises(Stop):
                model.complete("Say a word.", on_text=stop)
        assert isinstance(model.complete("Say a word.").text, str)

    def test_it_answers_several_threads(self, model: LLM) -> None:
        """Calls at the same time do not mix their answers."""
        with ThreadPoolExecutor(4) as threads:
            made = list(threads.map(lambda number: model.complete(f"Number {number}."), range(8)))
        assert all(isinstance(one, Completion) for one in made)

    def test_a_timeout_is_kept(self, model: LLM) -> None:
        """A call with a tiny time-out returns soon, with an answer or with a ``ModelError``."""
        began = time.monotonic()
        try:
            model.complete("Say a word.", timeout=0.001)
        except ModelError as error:
            assert error.message
        assert time.monotonic() - began < self.time_limit

    def test_a_failure_is_an_error_of_the_tree_without_a_key(self, failing_model: LLM | None) -> None:
        """The message names what failed; neither it nor its causes repeat a key."""
        if failing_model is None:
            pytest.skip("this model cannot fail")
        with pytest.raises(ModelError) as caught:
            failing_model.complete(f"The key is {os.environ['CONTRACT_API_KEY']}.", timeout=5.0)
        assert caught.value.message
        error: BaseException | None = caught.value
        while error is not None:
            assert _KEY not in str(error)
            error = error.__cause__

    def test_it_can_be_closed_and_used_again(self, model: LLM) -> None:
        """``close``, if implemented, may be called twice; a later call reopens the resources it needs."""
        model.complete("x")
        close = getattr(model, "close", None)
        if close is None:
            return
        close()
        close()
        assert isinstance(model.complete("x"), Completion)
        close()

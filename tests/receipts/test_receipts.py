"""Receipts: what holds, what has changed since, and what was altered, also with recomputed hashes."""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.errors import InputError
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall.trajectory import trajectory_file
from rlm_mem.receipts import Bundle, Receipt, Verification, verify
from rlm_mem.receipts.format import chained
from rlm_mem.receipts.making import chunk_hash
from rlm_mem.receipts.tape import hashed

NOTES = (
    "Carla moved from Oslo to Lisbon in spring.",
    "Ana: I drink green tea every morning.",
    "We chose PostgreSQL for the ledger because of its row-level security.",
    "The ledger goes live on 12 May 2026.",
    "Ben rides a red bicycle to the office in Lisbon.",
    "The backup of the ledger runs at 03:30 every night.",
)
QUESTIONS = (
    "When does the ledger go live?",
    "Which database was chosen for the ledger?",
    "Who owns a submarine?",
)


@dataclass
class Answered:
    """A memory, and the receipts of some answers from it."""

    memory: Memory
    receipts: list[Receipt]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answered]:
    with Memory.open(tmp_path_factory.mktemp("receipts") / "brain", llm="offline") as memory:
        for number, note in enumerate(NOTES):
            memory.remember(note, conversation_id=f"talk {number // 2}", occurred_at=f"2026-03-0{number + 1}")
        runs: list[Any] = [memory.recall(question) for question in QUESTIONS]
        runs += [memory.reason(QUESTIONS[0]), asked(memory, READ, "print(search('ledger'))", ANSWER)]
        yield Answered(memory, [memory.receipt(run, bundle=True) for run in runs])


def block(code: str) -> str:
    return f"```repl\n{code}\n```"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "brain", llm="offline") as opened:
        opened.remember("Carla moved from Oslo to Lisbon in spring.", conversation_id="talk")
        opened.remember("Ana: I drink green tea every morning.", conversation_id="talk")
        yield opened


def asked(memory: Memory, *programs: str, replies: tuple[str, ...] = ()) -> Any:
    """A run of these programs; replies of sub-calls follow the program that makes them."""
    from rlm_mem.recall import RecallOperation

    said = [block(programs[0]), *replies, *map(block, programs[1:])]
    return RecallOperation(memory.store, ScriptedLLM(said), functions=memory.continuum.functions).recall(
        "Where does Carla live?"
    )


READ = "text = read_chunk(search_chunks('Lisbon')[0])['content']\nprint(text)"
ANSWER = "FINAL(text.split()[5], chunk_ids=search_chunks('Lisbon'))"


# --- what holds ---------------------------------------------------------------------------------------------


def test_answers_hold_against_the_memory_and_against_their_bundles(answered: Answered) -> None:
    for receipt in answered.receipts:
        data, bundle = receipt.to_bytes(), receipt.bundle
        assert bundle is not None
        again = Receipt.from_bytes(data)
        assert again.to_bytes() == data
        found = answered.memory.verify(data)
        assert found.holds, str(found)
        assert {check.part: check.status for check in found.checks}["record"] == "holds"
        alone = verify(data, bundle=bundle.to_bytes())
        assert alone.holds, str(alone)


def test_runs_with_errors_sub_calls_and_sub_questions_hold(memory: Memory) -> None:
    sub = (
        "print(1 / 0)",
        READ + "\nr = rlm_query('What does Ana drink?')\nprint(llm_query(text), r, stats()['chunk_count'])",
        "print(read_chunk('chunk-nowhere'), list(search('tea')[0])); print(grep('(')) ",
        ANSWER,
    )
    from rlm_mem.recall import RecallOperation

    said = [
        block(sub[0]),
        block(sub[1]),
        block("FINAL('green tea')"),
        "Lisbon, it says",
        *map(block, sub[2:]),
    ]
    result = RecallOperation(memory.store, ScriptedLLM(said)).recall("Where does Carla live?")
    assert result.content == "Lisbon"
    receipt = memory.receipt(result, bundle=True)
    assert [step.depth for step in receipt.steps] == [0, 1, 0, 0, 0]
    assert receipt.replies[0].reply == "Lisbon, it says"
    assert memory.verify(receipt).holds, str(memory.verify(receipt))
    assert receipt.bundle is not None
    assert verify(receipt.to_bytes(), bundle=receipt.bundle.to_bytes()).holds


def test_an_answer_that_the_caller_gave_holds_by_the_record_only(memory: Memory) -> None:
    with memory.recall_session("Where does Carla live?") as session:
        session.execute(READ)
        result = session.finish("Lisbon", chunk_ids=memory.list_chunks(limit=1))
    receipt = memory.receipt(result, bundle=True)
    assert memory.verify(receipt).holds
    alone = verify(receipt, bundle=receipt.bundle)
    assert alone.verdict == "incomplete"
    assert alone.checks[-1].part == "answer"
    assert alone.checks[-1].status == "not checked"


def test_programs_that_read_the_clock_are_not_called_altered(memory: Memory) -> None:
    receipt = memory.receipt(asked(memory, "import time\nprint(time.time())", READ, ANSWER))
    found = memory.verify(receipt)
    assert found.verdict == "incomplete", str(found)


def test_what_a_relative_date_means_is_what_it_meant_when_it_was_asked(tmp_path: Path) -> None:
    from datetime import UTC, datetime, timedelta

    today = [datetime(2026, 3, 2, 9, tzinfo=UTC)]
    with Memory.open(tmp_path / "brain", clock=lambda: today[0]) as memory:
        memory.remember("Carla moved from Oslo to Lisbon in spring.")
        receipt = memory.receipt(asked(memory, "print(dates('yesterday'))\nFINAL('x')"))
        assert "2026-03-01" in receipt.steps[0].output
        today[0] += timedelta(days=9)
        assert memory.verify(receipt).holds


# --- what has changed since -----------------------------------------------------------------------------------


def test_a_newer_version_is_a_change_and_the_former_one_is_found_in_the_history(memory: Memory) -> None:
    receipt = memory.receipt(asked(memory, READ, ANSWER), bundle=True)
    chunk_id = receipt.answer.chunk_ids[0]
    memory.update(chunk_id, content="Carla moved from Oslo to Porto in spring, not to Lisbon.")
    found = memory.verify(receipt)
    assert found.verdict == "changed", str(found)
    by_part = {check.part: check for check in found.checks}
    assert "revision 1 is kept, and is as it was" in by_part[f"chunk {chunk_id}"].detail
    assert [by_part[part].status for part in ("step 1", "answer")] == ["changed", "changed"]
    assert verify(receipt, bundle=receipt.bundle).holds
    memory.delete(chunk_id)
    assert memory.verify(receipt).verdict == "changed"
    memory.delete(chunk_id, permanent=True)
    assert "not kept" in str(memory.verify(receipt))


def test_chunks_that_were_deleted_since_are_a_change(memory: Memory) -> None:
    run = asked(memory, READ, ANSWER)
    receipt, (chunk_id,) = memory.receipt(run), run.chunk_ids
    memory.delete(chunk_id)
    assert "it was deleted since; revision 1 is kept, and is as it was" in str(memory.verify(receipt))
    assert memory.receipt(run).chunks == receipt.chunks
    memory.restore(chunk_id)
    memory.delete(chunk_id, permanent=True)
    assert "the memory has no such chunk; revision 1 is not kept" in str(memory.verify(receipt))
    late = memory.receipt(run)
    assert [one.hash for one in late.chunks] == [None]
    assert "was not available when the receipt was written" in str(memory.verify(late))


def test_a_run_without_an_answer_names_what_was_read(memory: Memory) -> None:
    from rlm_mem.recall import RecallOperation

    config = Config.load(None, environ={}, recall={"max_iterations": 2})
    result = RecallOperation(memory.store, ScriptedLLM([block(READ)] * 2), config=config).recall("Who?")
    receipt = memory.receipt(result, bundle=True)
    assert not receipt.answer.concluded and receipt.answer.chunk_ids
    assert memory.verify(receipt).holds
    data, bundle = forged(receipt, "answer", chunk_ids=[])
    assert verify(data, bundle=bundle).verdict == "altered"


def test_more_memories_change_nothing_that_the_answer_rests_on(memory: Memory) -> None:
    receipt = memory.receipt(asked(memory, READ, ANSWER))
    memory.remember("Ben rides a red bicycle.")
    assert memory.verify(receipt).holds


def test_a_late_receipt_marks_steps_that_are_not_reproduced_and_has_no_bundle(memory: Memory) -> None:
    result = asked(memory, READ, ANSWER)
    memory.update(result.chunk_ids[0], content="Carla moved from Oslo to Porto in spring, not to Lisbon.")
    receipt = memory.receipt(result)
    assert [step.reproduced for step in receipt.steps] == [False, True]
    assert receipt.chunks[0].revision == 1
    assert memory.verify(receipt).verdict == "changed"
    with pytest.raises(InputError, match="no longer returns"):
        memory.receipt(result, bundle=True)


# --- what was altered -----------------------------------------------------------------------------------------


def rechained(lines: list[dict[str, Any]]) -> bytes:
    """The file with every hash computed again, as somebody would who knows the format."""
    before, made = "0" * 64, []
    lines[-1]["body"]["parts"] = len(lines) - 1
    for line in lines:
        before = chained(before, line["kind"], line["body"])
        made.append({**line, "hash": before})
    return b"".join(_line(line) for line in made)


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def alter_text(lines: list[dict[str, Any]], chance: random.Random) -> None:
    answer = next(line["body"] for line in lines if line["kind"] == "answer")
    if answer["content"] is None:
        answer["content"], answer["outcome"] = "on a Tuesday", "answered"
    else:
        at = chance.randrange(len(answer["content"]))
        answer["content"] = answer["content"][:at] + "7" + answer["content"][at:]


def alter_program(lines: list[dict[str, Any]], chance: random.Random) -> None:
    steps = [line["body"] for line in lines if line["kind"] == "step" and line["body"]["programs"]]
    step = chance.choice(steps)
    extra = chance.choice(["print('so it is')", "FINAL('something else')", "print(len(search('tea')))"])
    step["programs"][0] = extra + "\n" + step["programs"][0]


def alter_output(lines: list[dict[str, Any]], chance: random.Random) -> None:
    steps = [line["body"] for line in lines if line["kind"] == "step" and line["body"]["programs"]]
    step = chance.choice(steps)
    at = chance.randrange(len(step["output"]) + 1)
    step["output"] = step["output"][:at] + chance.choice("xyz7") + step["output"][at:]


def alter_hash(lines: list[dict[str, Any]], chance: random.Random) -> None:
    chunks = [line["body"] for line in lines if line["kind"] == "chunk"]
    calls = [call for line in lines if line["kind"] == "step" for call in line["body"]["calls"]]
    call = chance.choice(calls) if calls else None
    holder, name = chance.choice(
        [(chance.choice(chunks), "hash"), (call or chunks[0], "result" if call else "hash")]
    )
    at = chance.randrange(64)
    holder[name] = holder[name][:at] + ("0" if holder[name][at] != "0" else "1") + holder[name][at + 1 :]


def alter_order(lines: list[dict[str, Any]], chance: random.Random) -> None:
    answer = next(line["body"] for line in lines if line["kind"] == "answer")
    cited = [line for line in lines if line["kind"] == "chunk" and line["body"]["cited"]]
    read = [line for line in lines if line["kind"] == "chunk" and not line["body"]["cited"]]
    steps = [line for line in lines if line["kind"] == "step"]
    if len(steps) > 1 and chance.random() < 0.5:
        steps[0]["body"], steps[1]["body"] = steps[1]["body"], steps[0]["body"]
    elif len(read) > 1 and chance.random() < 0.5:
        read[0]["body"], read[-1]["body"] = read[-1]["body"], read[0]["body"]
    elif len(cited) > 1:
        cited[0]["body"], cited[-1]["body"] = cited[-1]["body"], cited[0]["body"]
        answer["chunk_ids"] = [line["body"]["id"] for line in cited]
    else:  # one source less is another order too
        other = next(line for line in lines if line["kind"] == "chunk" and not line["body"]["cited"])
        other["body"]["cited"] = True
        answer["chunk_ids"] = [
            line["body"]["id"] for line in lines if line["kind"] == "chunk" and line["body"]["cited"]
        ]
        if answer["content"] is None:
            answer["outcome"] = "closest only"


ALTERATIONS: tuple[Callable[[list[dict[str, Any]], random.Random], None], ...] = (
    alter_text, alter_program, alter_output, alter_hash, alter_order,
)  # fmt: skip


def planted(receipts: list[Receipt], number: int) -> Iterator[tuple[str, Receipt, list[dict[str, Any]]]]:
    """Alterations of all kinds, evenly: name, the true receipt, the altered lines."""
    chance = random.Random(20261122)
    for k in range(number):
        alter, receipt = ALTERATIONS[k % len(ALTERATIONS)], chance.choice(receipts)
        before = [json.loads(line) for line in receipt.to_bytes().splitlines()]
        lines = json.loads(json.dumps(before))
        alter(lines, chance)
        assert lines != before
        yield f"{k} {alter.__name__}", receipt, lines


def test_all_of_200_planted_alterations_are_found(answered: Answered) -> None:
    """A hundred as they are, and a hundred whose author computed every hash again."""
    missed = [
        name
        for name, _, lines in planted(answered.receipts, 100)
        if verify(b"".join(_line(line) for line in lines)).verdict != "altered"
    ]
    for number, (name, receipt, lines) in enumerate(planted(answered.receipts, 100)):
        data = rechained(lines)
        if number % 2:
            found = answered.memory.verify(data)
        else:  # neither a record of the run nor a signature helps here
            assert receipt.bundle is not None
            head = json.loads(data.splitlines()[-1])["hash"]
            found = verify(data, bundle=replace(receipt.bundle, receipt=head))
        if found.verdict != "altered" or {c.part: c.status for c in found.checks}["file"] != "holds":
            missed.append(f"{name}, hashes computed again: {found}")
    assert not missed, missed


def test_the_record_of_a_run_says_in_which_namespace_it_was(answered: Answered) -> None:
    for receipt in answered.receipts:
        lines = [json.loads(line) for line in receipt.to_bytes().splitlines()]
        lines[0]["body"]["namespace"] = "other"
        [found] = [one for one in answered.memory.verify(rechained(lines)).checks if one.part == "record"]
        assert found.status == "altered"
        assert found.detail.endswith("differs in: the namespace")


def test_recomputed_alterations_are_found_on_a_memory_without_records(answered: Answered) -> None:
    wrong = []
    for name, receipt, lines in planted(answered.receipts, 10):
        lines[0]["body"]["run"] = receipt.origin.run[:-8] + "ffffffff"
        found = answered.memory.verify(rechained(lines))
        assert {check.part: check.status for check in found.checks}["record"] == "not checked"
        if found.verdict != "altered":
            wrong.append(f"{name}: {found}")
    assert not wrong, "\n".join(wrong)


def test_a_byte_changed_a_line_left_out_or_repeated_is_found(answered: Answered) -> None:
    data, chance = answered.receipts[0].to_bytes(), random.Random(7)
    lines = data.splitlines(keepends=True)
    wrong = []
    for _ in range(150):
        at = chance.randrange(len(data))
        other = data[:at] + bytes([data[at] ^ chance.choice((1, 2, 32))]) + data[at + 1 :]
        wrong += [] if verify(other).verdict == "altered" else [other[max(0, at - 20) : at + 20]]
    for number in range(len(lines)):
        for kept in (
            lines[:number] + lines[number + 1 :],
            lines[: number + 1] + lines[number:],
            lines[:number],
        ):
            if verify(b"".join(kept)).verdict != "altered":
                wrong.append(b"line %d" % number)
    assert not wrong


def test_a_bundle_that_was_altered_is_found(answered: Answered) -> None:
    receipt = answered.receipts[0]
    assert receipt.bundle is not None
    lines = [json.loads(line) for line in receipt.bundle.to_bytes().splitlines()]
    for kind in ("chunk", "calls"):
        other = json.loads(json.dumps(lines))
        body = next(line["body"] for line in other if line["kind"] == kind)
        if kind == "chunk":
            body["content"] += " Or so they say."
        else:
            body["calls"][0]["result"] = body["calls"][0]["result"].replace("a", "e", 1)
        found = verify(receipt, bundle=b"".join(_line(line) for line in other))
        assert found.verdict == "altered", kind
    assert verify(receipt, bundle=answered.receipts[1].bundle).verdict == "altered"


def test_a_receipt_and_its_bundle_that_were_made_up_together_are_altered_where_they_cannot_be(
    answered: Answered,
) -> None:
    receipt = answered.receipts[0]
    assert receipt.bundle is not None

    def verified(lines: list[dict[str, Any]], bundle: Bundle) -> Verification:
        data = rechained(lines)
        bundle = replace(bundle, receipt=Receipt.from_bytes(data).head)
        return verify(data, bundle=bundle.to_bytes())

    lines = [json.loads(line) for line in receipt.to_bytes().splitlines()]
    documents = {one: document | {"content": 5} for one, document in receipt.bundle.chunks.items()}
    hashes = {one: chunk_hash(document) for one, document in documents.items()}
    for line in lines:
        if line["kind"] == "chunk":
            line["body"]["hash"] = hashes[line["body"]["id"]]
    assert verified(lines, replace(receipt.bundle, chunks=documents)).verdict == "altered"
    lines = [json.loads(line) for line in receipt.to_bytes().splitlines()]
    lines[2]["body"]["functions"] = ["no name"]
    assert verified(lines, receipt.bundle).verdict == "altered"
    lines[1]["body"]["asked_at"] = "today"
    assert verify(rechained(lines)).verdict == "altered"


@pytest.mark.parametrize("number", [-1, 10**12])
def test_calls_of_a_step_that_the_receipt_does_not_have_are_found_at_once(
    answered: Answered, number: int
) -> None:
    receipt = answered.receipts[0]
    assert receipt.bundle is not None
    calls = next(iter(receipt.bundle.calls.values()))
    found = verify(
        receipt, bundle=replace(receipt.bundle, calls={**receipt.bundle.calls, number: calls}).to_bytes()
    )
    assert [check.part for check in found.checks if check.status == "altered"] == [f"step {number + 1}"]


def forged(receipt: Receipt, kind: str, **fields: Any) -> tuple[bytes, Bundle]:
    """A receipt with other values in its first part of a kind, hashed again, and its bundle for it."""
    lines = [json.loads(line) for line in receipt.to_bytes().splitlines()]
    next(line["body"] for line in lines if line["kind"] == kind).update(fields)
    data = rechained(lines)
    assert receipt.bundle is not None
    return data, replace(receipt.bundle, receipt=json.loads(data.splitlines()[-1])["hash"])


@pytest.mark.parametrize(
    ("kind", "fields", "part", "detail"),
    [
        ("answer", {"outcome": "no answer"}, "answer", "its outcome is 'answered', not 'no answer'"),
        ("answer", {"by_program": False}, "answer", "it disagrees with the steps"),
        ("chunk", {"cited": False}, "answer", "are not those that are marked"),
        ("step", {"question": "Who is it?"}, "step 1", "it is about another question"),
        ("step", {"turn": 3}, "step 1", "it is not at its place"),
        ("answer", {"confidence": 0.9}, "answer", "the programs give the confidence 0.8"),
    ],
)
def test_parts_that_contradict_each_other_are_found_without_a_memory(
    memory: Memory, kind: str, fields: dict[str, Any], part: str, detail: str
) -> None:
    answer = "FINAL('Lisbon', chunk_ids=search_chunks('Lisbon'), confidence=0.8)"
    receipt = memory.receipt(asked(memory, READ, answer), bundle=True)
    data, bundle = forged(receipt, kind, **fields)
    found = verify(data, bundle=bundle)
    assert found.verdict == "altered"
    assert any(check.part == part and detail in check.detail for check in found.checks), str(found)


def test_lines_that_do_not_belong_in_a_bundle_are_found(answered: Answered) -> None:
    receipt = answered.receipts[0]
    assert receipt.bundle is not None
    lines = receipt.bundle.to_bytes().splitlines(keepends=True)
    for other in ([], lines[1:], [*lines, lines[0]], [*lines, _line({"kind": "note", "body": {}})]):
        found = verify(receipt, bundle=b"".join(other))
        assert found.verdict == "altered"
        assert found.checks[-1].part == "bundle"


def test_a_bundle_that_quotes_a_chunk_with_another_text_is_found(memory: Memory) -> None:
    receipt = memory.receipt(asked(memory, READ, ANSWER), bundle=True)
    assert receipt.bundle is not None
    calls = json.loads(json.dumps(receipt.bundle.calls[0]))
    for call in calls:
        if isinstance(call["result"], dict):
            call["result"]["content"] = "Carla moved to Porto."
    steps = (msgspec.structs.replace(receipt.steps[0], calls=hashed(calls)), *receipt.steps[1:])
    other = replace(receipt, steps=steps)
    bundle = replace(receipt.bundle, receipt=other.head, calls={**receipt.bundle.calls, 0: calls})
    found = verify(other, bundle=bundle)
    assert found.verdict == "altered"
    assert "quotes" in found.checks[-1].detail


def test_only_programs_that_read_the_clock_or_chance_may_differ(memory: Memory) -> None:
    """The step gave the same when the receipt was made, such as a date on the same day."""
    receipt = memory.receipt(asked(memory, "import time\nprint(time.time())", READ, ANSWER))
    for program, status in ((receipt.steps[0].programs[0], "not checked"), ("print(1)", "altered")):
        step = msgspec.structs.replace(receipt.steps[0], reproduced=True, programs=[program])
        found = memory.verify(replace(receipt, steps=(step, *receipt.steps[1:])))
        assert {check.part: check.status for check in found.checks}["step 1"] == status


# --- signatures -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    made = {}
    for name in ("mine", "other"):
        private = Ed25519PrivateKey.generate()
        made[name] = folder / name
        made[name].write_bytes(
            private.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
            )
        )
        public = private.public_key().public_bytes_raw()
        blob = b"".join(struct.pack(">I", len(part)) + part for part in (b"ssh-ed25519", public))
        made[f"{name}.pub"] = folder / f"{name}.pub"
        made[f"{name}.pub"].write_text(f"ssh-ed25519 {base64.b64encode(blob).decode()} someone@example.org\n")
    return made


def test_a_signature_says_who_wrote_it_and_covers_every_part(
    answered: Answered, keys: dict[str, Path]
) -> None:
    memory = answered.memory
    signed = memory.receipt(answered.receipts[0].origin.run, key=keys["mine"])
    assert memory.verify(signed.to_bytes(), key=keys["mine.pub"]).holds
    assert memory.verify(signed, key=keys["mine.pub"].read_text()).holds
    unnamed = memory.verify(signed)
    assert unnamed.holds
    assert (unnamed.signer or "").startswith("SHA256:")
    assert memory.verify(signed, key=keys["other.pub"]).verdict == "altered"
    assert memory.verify(replace(signed, signature=None), key=keys["mine.pub"]).verdict == "altered"
    cheaper = replace(signed, cost=msgspec.structs.replace(signed.cost, model_calls=0))
    found = verify(cheaper.to_bytes(), key=keys["mine.pub"])
    assert {check.part: check.status for check in found.checks}["signature"] == "altered"
    with pytest.raises(InputError, match="private key"):
        verify(signed, key=keys["mine"])
    with pytest.raises(InputError, match="contains no Ed25519 public key"):
        verify(signed, key="ssh-ed25519 AAAA")


def test_keys_are_read_as_pem_and_with_a_password_and_wrong_ones_refused_in_words(
    answered: Answered, keys: dict[str, Path], tmp_path: Path
) -> None:
    memory, run = answered.memory, answered.receipts[0].origin.run

    def written(name: str, key: Any, password: str | None = None) -> tuple[Path, Path]:
        """The private and the public key as PEM."""
        private, public = tmp_path / name, tmp_path / f"{name}.pem"
        locked = serialization.BestAvailableEncryption(password.encode()) if password else None
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                locked or serialization.NoEncryption(),
            )
        )
        public.write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        return private, public

    private, public = written("locked", Ed25519PrivateKey.generate(), "quince")
    signed = memory.receipt(run, key=private, password="quince")
    assert memory.verify(signed, key=public).holds
    assert signed.signature is not None
    other = replace(signed, signature=msgspec.structs.replace(signed.signature, algorithm="rsa"))
    assert "signature: altered, the signature is of an unknown kind, 'rsa'" in str(memory.verify(other))
    private_of_another_kind, public_of_another_kind = written("other", generate_private_key(SECP256R1()))
    for key, password, message in (
        (private, "pear", "its password is wrong or missing"),
        (private, None, "its password is wrong or missing"),
        (keys["mine.pub"], None, "is not a private key"),
        (private_of_another_kind, None, "is not an Ed25519 key"),
    ):
        with pytest.raises(InputError, match=message):
            memory.receipt(run, key=key, password=password)
    with pytest.raises(InputError, match="contains no Ed25519 public key"):
        memory.verify(signed, key=public_of_another_kind)


# --- hostile files ----------------------------------------------------------------------------------------------


def test_hostile_files_are_refused_in_words(memory: Memory, tmp_path: Path) -> None:
    receipt = memory.receipt(asked(memory, READ, ANSWER))
    first = receipt.to_bytes().splitlines(keepends=True)[0]
    for data in (
        b"", b"\n", b"{}\n", b"[" * 100_000 + b"\n", b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"\n", b"\xff\xfe\n",
        b"9" * 5_000 + b"\n", first * 3, first[:-2] + b"\n", b'{"body":{},"hash":"","kind":"seal"}\n', b"null\n",
        b'{"body":NaN,"hash":"","kind":"receipt"}\n',
    ):  # fmt: skip
        assert memory.verify(data).verdict == "altered", data[:40]
        with pytest.raises(InputError):
            Bundle.from_bytes(data)
    with pytest.raises(InputError, match="at most"):
        verify(b"x" * 64_000_001)
    with pytest.raises(InputError, match="is not a file"):
        verify(tmp_path)
    with pytest.raises(InputError, match="exists already"):
        receipt.write(receipt.write(tmp_path / "a.receipt"))


def test_programs_of_a_receipt_stay_in_the_sandbox_and_within_time(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_mem.receipts.tape.REPLAY_SECONDS", 1.0)
    receipt = memory.receipt(asked(memory, READ, ANSWER), bundle=True)
    target = tmp_path / "written"
    for program in (
        f"open({str(target)!r}, 'w').write('x')",
        "import os",
        "while True: pass",
        "a = [1]\nwhile 1: a += a",
    ):
        steps = (msgspec.structs.replace(receipt.steps[0], programs=[program]), *receipt.steps[1:])
        other = replace(receipt, steps=steps)
        assert memory.verify(other.to_bytes()).verdict == "altered"
        assert receipt.bundle is not None
        assert not verify(other, bundle=replace(receipt.bundle, receipt=other.head)).holds
    assert not target.exists()


def test_a_run_whose_record_was_removed_is_verified_by_replay(memory: Memory) -> None:
    receipt = memory.receipt(asked(memory, READ, ANSWER))
    memory.store.backend.files(memory.store.namespace).remove(trajectory_file(receipt.origin.run))
    found = memory.verify(receipt)
    assert found.holds
    assert "record: not checked" in str(found)


def test_a_run_whose_record_lost_its_end_is_verified_by_replay(memory: Memory) -> None:
    receipt = memory.receipt(asked(memory, READ, ANSWER))
    stored, name = memory.store.backend.files(memory.store.namespace), trajectory_file(receipt.origin.run)
    lines = (stored.read(name) or b"").splitlines(keepends=True)
    stored.write(name, b"".join(lines[:-1]))
    found = memory.verify(receipt)
    assert found.holds
    assert "record: not checked, the record of the run has no end" in str(found)

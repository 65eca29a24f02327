"""Capture over a month of coding agents: decisions kept, junk kept, context tokens, on sessions of four clients.

    python benchmarks/coding_month.py             both halves
    python benchmarks/coding_month.py --quick     the half for development only; records nothing

Every working day has sessions on three projects, some with sentences that are worth keeping, among questions, chatter,
plans of the moment and reports that are not. They are written in the transcript format of each client and passed
through the hooks as the client calls them. The sentences are in two halves, both written after the first rules: rules
may be tuned on `development` and are evaluated on `apart`. Some prompts of later days are about what was kept; the
others should get no context.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rlm_mem import Memory
from rlm_mem.mcp.hook_clients import HOOK_CLIENTS
from rlm_mem.mcp.hooks import handle_event
from rlm_mem.text.tokens import count_tokens
from support import Report, arguments, percentile

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.capture.sessions import event, written
from tests.typed import present

CORPUS = Path(__file__).parent / "corpora" / "coding_month.json"
DAYS = 22
PROJECTS = ("ledger", "website", "importer")


def month(half: dict[str, Any], seed: int, folder: Path) -> dict[str, Any]:
    """Run a month of sessions and count."""
    chance = random.Random(seed)
    brain = folder / "brain"
    wanted = [{**one, "project": chance.choice(PROJECTS)} for one in half["wanted"]]
    days = [list[dict[str, Any]]() for _ in range(DAYS)]
    for one in wanted:
        chance.choice(days[: DAYS - 4]).append(one)
    roots = {}
    for project in PROJECTS:
        roots[project] = folder / project
        git = roots[project] / ".git"
        git.mkdir(parents=True)
        (git / "config").write_text(f'[remote "origin"]\n\turl = git@github.com:acme/{project}.git\n')

    def opened(namespace: str | None) -> Memory:
        return Memory.open(brain, namespace=namespace)

    seconds: list[float] = []

    def hook(kind: str, number: int, project: str, transcript: Path | None = None, **more: Any) -> str:
        client = HOOK_CLIENTS[number % len(HOOK_CLIENTS)]
        if client.name == "cursor" and kind == "user-prompt":
            client = HOOK_CLIENTS[0]  # takes no context for a prompt
        name = "conversation_id" if client.name == "cursor" else "session_id"
        given = event(client.name, kind, roots[project], transcript, **{name: f"s-{number}", **more})
        before = time.perf_counter()
        context: list[str] = []
        handle_event(kind, client.name, given, opened, context.append, brain=brain)
        seconds.append(time.perf_counter() - before)
        return "".join(context)

    number, sentences, start_tokens = 0, 0, []
    for day in days:
        for project in PROJECTS:
            number += 1
            client = HOOK_CLIENTS[number % len(HOOK_CLIENTS)].name
            start_tokens.append(count_tokens(hook("session-start", number, project)))
            said = [(one["who"], one["text"]) for one in day if one["project"] == project]
            said += [tuple(one) for one in chance.sample(half["junk"], 8)]
            chance.shuffle(said)
            sentences += len(said)
            transcript = written(folder / f"{number}.jsonl", client, said)
            hook("stop", number, project, transcript)
    kept = {
        project: [
            present(memory.store.get_chunk(one, track=False)).content.partition(": ")[2]
            for one in memory.list_chunks()
        ]
        for project in PROJECTS
        for memory in [opened(f"project/github.com/acme/{project}")]
    }
    right = [one for one in wanted if any(text in one["text"] for text in kept[one["project"]])]
    texts = [text for found in kept.values() for text in found]
    junk = [text for text in texts if not any(text in one["text"] for one in wanted)]
    told, prompt_tokens = 0, []
    for one in right:
        number += 4  # of Claude Code
        context = hook(
            "user-prompt", number - number % 4, one["project"], session_id=f"q-{number}", prompt=one["prompt"]
        )
        prompt_tokens.append(count_tokens(context))
        told += any(text in context for text in kept[one["project"]] if text in one["text"])
    other = [
        count_tokens(hook("user-prompt", 0, PROJECTS[n % 3], session_id=f"o-{n}", prompt=prompt))
        for n, prompt in enumerate(half["other_prompts"])
    ]
    if "--show" in sys.argv:
        print("missed:", *[one["text"] for one in wanted if one not in right], sep="\n  ")
        print("junk:", *junk, sep="\n  ")
    return {
        "sessions": DAYS * len(PROJECTS),
        "sentences": sentences,
        "sentences to keep": len(wanted),
        "of these kept %": round(100 * len(right) / len(wanted), 1),
        "kept by mistake %": round(100 * len(junk) / max(1, len(texts)), 1),
        "given with a related prompt %": round(100 * told / max(1, len(right)), 1),
        "tokens per related prompt": round(sum(prompt_tokens) / max(1, len(prompt_tokens))),
        "unrelated prompts without context %": round(
            100 * sum(not tokens for tokens in other) / len(other), 1
        ),
        "tokens at session start": round(sum(start_tokens) / len(start_tokens)),
        "max tokens at session start": max(start_tokens),
        "hook p50 ms": round(percentile(seconds, 0.5) * 1e3),
    }


def main() -> None:
    """Measure and write the report."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true", help="print what was missed, and the junk")
    options = parser.parse_args()
    report = Report("coding_month", "A month with coding agents through the hooks.")
    corpus = json.loads(CORPUS.read_text(encoding="utf-8"))
    for half, name in {"development": "development", "held out": "apart"}.items():
        if options.quick and half != "development":
            break
        with tempfile.TemporaryDirectory() as folder:
            report.add(half=half, **month(corpus[name], 11, Path(folder)))
    if options.quick:
        print(report.table())
    else:
        report.finish(options.output)


if __name__ == "__main__":
    main()

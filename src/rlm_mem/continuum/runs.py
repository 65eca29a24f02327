"""Reads and writes records of executions as Markdown: goal, steps, conditions, success indicators."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import field

from rlm_mem.arguments import check_mapping
from rlm_mem.errors import InvalidMemory
from rlm_mem.record import FrozenRecord
from rlm_mem.text.patterns import late

_STEP = late(r"###\s+(\d{1,9})\.\s*(.*)\Z")
_ITEM = late(r"[-*]\s+(.*)\Z")
_PAIR = late(r"(call|validation|on error|depends on|status|result)\s*:\s*(.*)\Z", re.IGNORECASE)
_LISTS = {
    "preconditions": "preconditions",
    "postconditions": "postconditions",
    "success indicators": "indicators",
    "evidence": "evidence",
}
GOOD = ("ok", "success", "done", "recovered")


class ToolCall(FrozenRecord, frozen=True):
    """One tool call of an execution.

    Attributes:
        number: position, from 1.
        call: arguments of the tool. ``validation``: how the result was checked. ``on_error``: what to do on an error.
        depends_on: numbers of earlier steps.
        status: ``ok``, ``recovered`` (after its error handling), or a description of the failure.
    """

    number: int
    tool: str
    call: str = ""
    validation: str = ""
    on_error: str = ""
    depends_on: tuple[int, ...] = ()
    status: str = "ok"
    result: str = ""

    @property
    def went_well(self) -> bool:
        """Whether the status is one of success."""
        return self.status.strip().lower() in GOOD


class ExecutionRecord(FrozenRecord, frozen=True):
    """One execution, or a trace merged from several."""

    goal: str
    steps: tuple[ToolCall, ...] = ()
    preconditions: tuple[str, ...] = ()
    postconditions: tuple[str, ...] = ()
    indicators: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    notes: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools in call order."""
        return tuple(step.tool for step in self.steps)


def as_step(number: int, fields: ToolCall | Mapping[str, Any]) -> ToolCall:
    """Build a numbered step from a mapping of its fields; raises InvalidMemory."""
    if isinstance(fields, ToolCall):
        fields = {name: getattr(fields, name) for name in ToolCall.__struct_fields__ if name != "number"}
    unknown = set(check_mapping(fields, f"step {number}")) - set(ToolCall.__struct_fields__)
    if unknown or not str(fields.get("tool", "")).strip():
        what = f"has unknown fields {', '.join(sorted(map(str, unknown)))}" if unknown else "names no tool"
        raise InvalidMemory(
            f"step {number} {what}", hint=f"a step has: {', '.join(ToolCall.__struct_fields__[1:])}"
        )
    depends = fields.get("depends_on") or ()
    if not isinstance(depends, Iterable) or not all(isinstance(one, int) for one in depends):
        raise InvalidMemory(f"step {number}: depends_on is a list of step numbers")
    texts = {
        name: _as_text(fields[name])
        for name in ("call", "validation", "on_error", "status", "result")
        if fields.get(name) is not None
    }
    return ToolCall(
        number=number, tool=" ".join(str(fields["tool"]).split()), depends_on=tuple(depends), **texts
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def write_run(run: ExecutionRecord) -> str:
    """Format a run as the body of a memory file."""
    lines = [f"# {' '.join(run.goal.split())}", ""]
    if run.notes.strip():
        lines += [_without_headings(run.notes.strip()), ""]
    if run.steps:
        lines += ["## Steps", ""]
    for step in run.steps:
        lines += [f"### {step.number}. {step.tool}", ""]
        for name, value in (
            ("call", step.call),
            ("validation", step.validation),
            ("on error", step.on_error),
            ("depends on", ", ".join(map(str, step.depends_on))),
            ("status", step.status),
            ("result", step.result),
        ):
            if value:
                lines.append(f"- {name}: {_one_line(value)}")
        lines.append("")
    for title, items in (
        ("Preconditions", run.preconditions),
        ("Postconditions", run.postconditions),
        ("Success indicators", run.indicators),
    ):
        lines += _format_list(title, items)
    for title, body in run.sections.items():
        lines += [f"## {title}", "", _without_headings(body.strip()), ""]
    lines += _format_list("Evidence", run.evidence)
    return "\n".join(lines).rstrip("\n") + "\n"


def _format_list(title: str, items: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *(f"- {_one_line(item)}" for item in items), ""] if items else []


def _one_line(value: str) -> str:
    """Format a value on one line; text with line breaks or a leading quote becomes a JSON string."""
    plain = value == value.strip() and value.isprintable() and not value.startswith('"')
    return value if plain and value else json.dumps(value, ensure_ascii=True)


def _without_headings(text: str) -> str:
    """Indent lines of free text that look like headings."""
    return "\n".join(" " + line if line.startswith("#") else line for line in text.splitlines())


def _parse_value(value: str) -> str:
    value = value.strip()
    if value.startswith('"'):
        try:
            loaded = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return loaded if isinstance(loaded, str) else value
    return value


def read_run(body: str) -> ExecutionRecord:
    """Parse the body of a memory file; missing parts stay empty, text before the first section becomes the notes."""
    goal, notes = "", []
    steps: list[dict[str, Any]] = []
    lists: dict[str, list[str]] = {name: [] for name in _LISTS.values()}
    others: dict[str, list[str]] = {}
    section: str | None = None
    for line in body.splitlines():
        bare = line.rstrip()
        if bare.startswith("# ") and not goal and section is None:
            goal = bare[2:].strip()
        elif bare.startswith("## "):
            section = bare[3:].strip()
            if section.lower() not in ("steps", *_LISTS):
                others.setdefault(section, [])
        elif section is None:
            notes.append(bare)
        elif section.lower() == "steps":
            _read_step_line(bare, steps)
        elif section.lower() in _LISTS:
            item = _ITEM.match(bare)
            if item:
                lists[_LISTS[section.lower()]].append(_parse_value(item[1]))
        else:
            others[section].append(bare)
    return ExecutionRecord(
        goal=goal,
        steps=tuple(ToolCall(**step) for step in steps),
        preconditions=tuple(lists["preconditions"]),
        postconditions=tuple(lists["postconditions"]),
        indicators=tuple(lists["indicators"]),
        evidence=tuple(lists["evidence"]),
        notes="\n".join(notes).strip(),
        sections={name: "\n".join(lines).strip() for name, lines in others.items()},
    )


def _read_step_line(line: str, steps: list[dict[str, Any]]) -> None:
    head = _STEP.match(line)
    if head:
        steps.append({"number": int(head[1]), "tool": head[2].strip(), "status": ""})
        return
    item = _ITEM.match(line)
    pair = _PAIR.match(item[1]) if item and steps else None
    if not pair:
        return
    name, value = pair[1].lower().replace(" ", "_"), pair[2]
    if name == "depends_on":
        steps[-1][name] = tuple(int(number) for number in re.findall(r"\d{1,9}", value))
    else:
        steps[-1][name] = _parse_value(value)

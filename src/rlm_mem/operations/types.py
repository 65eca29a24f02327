"""Types of request fields: their bounds apply to every interface and are part of the OpenAPI document.

The schemas contain the rules of the store, so that the document allows only what the store accepts. The description of
a pattern explains it in the document and in refusals.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from rlm_mem.chunk import MAX_TAG_LENGTH, MAX_TAGS, format_time, parse_time
from rlm_mem.chunk.types import Origin, TrustLevel
from rlm_mem.config import SecretAction

# `$` alone would match before a final line break; other languages lack `\Z`.
_END = r"$(?!\n)"
_LINE = rf"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*{_END}"
# A look-ahead: generators of requests merge a bare `\S` with the greatest length into one for text without spaces.
_VISIBLE = r"(?=\S)"
# Exactly the days that exist in the years 1000 to 8999, so that no time that matches is refused later.
_YEAR = "[1-8][0-9]{3}"
_LEAP = "(?:[1-8][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[1357][26])00)"
_DAY = (
    f"{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29"
)
_CLOCK = (
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
)


def about(description: str, **bounds: Any) -> Meta:
    """Return the description of a field, with its bounds as ``Meta`` takes them."""
    return Meta(description=description, **bounds)


def matching(form: str, description: str | None = None, **more: Any) -> Meta:
    """Return the bounds of a text that has a form as a whole, given as a regular expression; ``more``: of ``Meta``."""
    return Meta(pattern=f"^{form}{_END}", description=description, **more)


_NAME = "[a-z][a-z0-9_-]{0,63}"

Line = Annotated[
    str, about("One line with a visible character.", min_length=1, max_length=1000, pattern=_LINE)
]
Tag = Annotated[
    str, about("One line with a visible character.", min_length=1, max_length=MAX_TAG_LENGTH, pattern=_LINE)
]
Tags = Annotated[list[Tag], Meta(max_length=min(MAX_TAGS, 100))]
Content = Annotated[
    str, about("Text with a visible character.", min_length=1, max_length=8_388_608, pattern=_VISIBLE)
]
ChunkContent = Annotated[
    str, about("Text with a visible character.", min_length=1, max_length=200_000, pattern=_VISIBLE)
]
LongText = Annotated[str, Meta(max_length=100_000)]
Question = Annotated[
    str, about("Text with a visible character.", min_length=1, max_length=20_000, pattern=_VISIBLE)
]
Confidence = Annotated[float, Meta(ge=0, le=1)]
TIME_PATTERN = rf"^(?:{_DAY})(?:T{_CLOCK})?{_END}"
Time = Annotated[
    str,
    about(
        "A day (YYYY-MM-DD), or a time with its offset from UTC as in RFC 3339.",
        pattern=TIME_PATTERN,
        examples=["2026-02-10", "2026-02-10T21:37:00Z"],
    ),
]
Since = Annotated[Time, about("Only from this time on.")]
Until = Annotated[Time, about("Only up to this time, including a day.")]
AsOf = Annotated[Time, about("Use what was valid at this time.")]
Extra = Annotated[
    dict[str, Any],
    about(
        "Custom fields of plain data, stored as they are.",
        max_length=100,
        extra_json_schema={"additionalProperties": {"$ref": "#/components/schemas/Plain"}},
    ),
]
OriginName = Annotated[
    Origin,
    about(
        "Where it came from: written by a person or an agent, from a tool or a web page, or imported. "
        "Default: derived from `source`; person for interaction."
    ),
]
OriginFilter = Annotated[Origin, about("Only of this origin.")]
TrustName = Annotated[TrustLevel, about("How far it is trusted. Default: as configured for its origin.")]
ShownTrust = Literal["untrusted", "ordinary", "trusted"]
TrustFilter = Annotated[
    ShownTrust,
    about("Only with at least this trust: `ordinary` excludes untrusted text."),
]
TtlText = Annotated[
    str,
    matching("[1-9][0-9]{0,8}[smhdw]", "Time until it expires: a number with s, m, h, d or w, such as 30d."),
]
Secrets = Annotated[
    SecretAction,
    about(
        "Keys and passwords: `redact` stores `[redacted:RULE]` instead, `keep` stores them, "
        "`refuse` stores nothing. Default: the setting `secrets.action`."
    ),
]
Limit = Annotated[int, about("Maximum items per page.", ge=1, le=500)]
Cursor = Annotated[str, about("The next_cursor of the previous page.", min_length=1, max_length=1000)]
Revision = Annotated[int, Meta(ge=1, le=2**53)]

ChunkId = Annotated[
    str,
    matching("chunk-[A-Za-z0-9][A-Za-z0-9_-]{0,119}", "A chunk id.", examples=["chunk-2026-02-10-a1b2c3d4"]),
]
ManyIds = Annotated[list[ChunkId], about("Ids of the memories that the answer cites.", max_length=100)]
ResultForm = Annotated[
    dict[str, Any], about("A JSON Schema for the answer, which is then also returned as value.")
]
ChunkType = Annotated[
    str,
    matching(
        _NAME,
        "A chunk type, built in or registered in config.toml.",
        extra_json_schema={"x-names": "chunk-types"},
    ),
]
TypeFilter = Annotated[str, matching(_NAME, "A chunk or link type, even one that is no longer registered.")]
TaskType = Annotated[
    str,
    about(
        "One of those in the setting continuum.task_types.",
        max_length=100,
        extra_json_schema={"x-names": "task-types"},
    ),
]
LinkType = Annotated[
    str,
    matching(
        _NAME,
        "A link type, built in or registered in config.toml.",
        extra_json_schema={"x-names": "link-types"},
    ),
]
Handle = Annotated[
    str, matching("recall-[0-9a-f]{16}", "The handle that recall_open (POST /sessions) returned.")
]
RunId = Annotated[str, matching("run-[0-9a-f]{16}", "The id of a run.")]
TrajectoryId = Annotated[
    str, matching("(?:last|traj-[0-9]{8}T[0-9]{6}-[0-9a-f]{8})", "The id of a trajectory, or last.")
]
CaseId = Annotated[
    str, matching("[a-z]{1,20}-[0-9a-f]{10}", "The id of a case, as the review queue lists it.")
]


class Request(Struct, forbid_unknown_fields=True, kw_only=True):
    """Base of every request; unknown fields are refused, not ignored."""


class DryRun(Request):
    """Whether to only report changes."""

    dry_run: Annotated[bool, about("Only report what would be done.")] = True


def utc(time: str | None) -> str | None:
    """Return a time in the format of recorded times (UTC), for comparison with them; a day is unchanged."""
    return time if time is None or len(time) <= 10 else format_time(parse_time(time))


PARTS: dict[str, Any] = {
    "chunk_id": ChunkId,
    "target_id": ChunkId,
    "link_type": LinkType,
    "handle": Handle,
    "run_id": RunId,
    "trajectory_id": TrajectoryId,
    "case_id": CaseId,
    "transition_id": Annotated[str, matching("[A-Za-z0-9][A-Za-z0-9_-]{0,79}", "The id of a transition.")],
    "token_id": Annotated[str, matching("[0-9a-f]{12}", "The id of a token.")],
    "slider": Annotated[str, matching("[A-Za-z][A-Za-z0-9_-]{0,63}", "The name of a slider.")],
}


# Alternative names that agents use for an argument.
CONVERSATION_NAMES = dict.fromkeys(
    ("conversation", "conversationId", "session_id", "thread_id", "project"), "conversation_id"
)
TYPE_NAMES = dict.fromkeys(("chunk_type", "kind", "category"), "type")
ID_NAMES = dict.fromkeys(("id", "chunk_id", "chunk_ids", "memory_id", "memory_ids"), "ids")
TAG_NAMES = dict.fromkeys(("tag", "labels", "label", "topics"), "tags")
QUESTION_NAMES = dict.fromkeys(("query", "q", "prompt", "text"), "question")

"""Types of what agents give: bounds and descriptions, and other names under which agents give the same.

They are wider than those of :mod:`rlm_mem.operations.types`: a schema in front of a model must be short, so formats are
left to the memory, whose errors say in a sentence what is wrong.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from rlm_mem.config import SecretAction

__all__ = [
    "CONVERSATION",
    "TAGS",
    "TYPE",
    "ChunkId",
    "ChunkIds",
    "Confidence",
    "Conversation",
    "Handle",
    "MaybeIds",
    "MaybeText",
    "Question",
    "Secrets",
    "Tags",
    "Text",
    "Time",
    "TypeName",
]

_Id = Annotated[str, Meta(min_length=1, max_length=200)]
_Word = Annotated[str, Meta(min_length=1, max_length=200)]

Text = Annotated[str, Meta(min_length=1, max_length=8_388_608)]
MaybeText = Annotated[str, Meta(max_length=100_000)] | None
Question = Annotated[str, Meta(min_length=1, max_length=20_000)]
ChunkId = Annotated[str, Meta(min_length=1, max_length=200, description="Id of a memory (chunk-…).")]
ChunkIds = Annotated[
    list[_Id], Meta(min_length=1, max_length=20, description="Ids of memories (chunk-…), at most 20.")
]
MaybeIds = Annotated[list[_Id], Meta(max_length=100)] | None
Tags = Annotated[list[_Word], Meta(max_length=50)] | None
Conversation = Annotated[str, Meta(max_length=500)] | None
TypeName = Annotated[str, Meta(max_length=100)] | None
Time = Annotated[str, Meta(max_length=40)] | None
Secrets = SecretAction | None
Confidence = Annotated[float, Meta(ge=0, le=1)]
Handle = Annotated[
    str, Meta(min_length=1, max_length=100, description="The handle that recall_open returned.")
]

# Other names of arguments that several tools understand.
CONVERSATION = dict.fromkeys(
    ("conversation", "conversationId", "session_id", "thread_id", "project"), "conversation_id"
)
TYPE = dict.fromkeys(("chunk_type", "kind", "category"), "type")
TAGS = dict.fromkeys(("tag", "labels", "label", "topics"), "tags")

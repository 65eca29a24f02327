"""Generates the OpenAPI 3.1 document from the types that validate requests, so that they cannot differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rlm_mem import __version__
from rlm_mem.chunk import ALL_LINK_TYPES, CHUNK_TYPES, TypeRegistry
from rlm_mem.continuum.schema import TASK_TYPES
from rlm_mem.operations.operation import PREFIX, Operation, parts_of
from rlm_mem.operations.problems import MEDIA_TYPE, Problem
from rlm_mem.operations.registry import ROUTES
from rlm_mem.operations.types import PARTS

_REF = "#/components/schemas/{name}"
_JSON = "application/json"
_BYTES = "application/octet-stream"
"""The type of a body that may be any file."""
_REFUSALS = (400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 422, 429, 500, 502, 503, 504, 507)
_REASONS = {
    200: "Done.", 201: "Created.", 202: "Started; the run continues in the background.", 204: "Done, without a body.",
    304: "The revision that the client has is the current one.",
    400: "The request cannot be read.", 401: "The token is missing or wrong.",
    403: "Not permitted, for this token or on this server.",
    404: "There is nothing with this address or id.", 405: "The address does not take this method.",
    408: "The body took too long to arrive.",
    409: "It conflicts with the current state or another change.", 412: "The chunk was changed since that ETag.",
    413: "The body is too large.", 415: "The body has the wrong media type.",
    421: "The Host header does not name this server.",
    422: "The request does not match its schema.", 429: "Too many requests.", 500: "The store or the server failed.",
    502: "The model failed.", 503: "Busy, or the model is not set up.", 504: "The model took too long.",
    507: "The disk is full.",
}  # fmt: skip
#: Schema of arbitrary plain data, as in metadata; integers in the range that JSON readers preserve. Not recursive, and
#: without `prefixItems`: generators of clients leave out every operation whose schema has either.
_PLAIN: dict[str, Any] = {
    "anyOf": [
        {"type": ["null", "boolean", "string"]},
        {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
        {"type": "number", "minimum": -1e300, "maximum": 1e300},
        {"type": "array", "items": {}, "maxItems": 1000},
        {"type": "object", "additionalProperties": {}, "maxProperties": 1000},
    ]
}  # fmt: skip


_INFO = {
    "title": "RLM-MEM",
    "version": __version__,
    "description": "Long-term memory for LLM agents: everything that `Memory` does, for one namespace.",
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "The token that the server printed when it started, or was given.",
}


def document(types: TypeRegistry | None = None, task_types: Sequence[str] = ()) -> dict[str, Any]:
    """Generate the document of the HTTP interface.

    Args:
        types: the chunk and link types of a memory; None: the built-in ones.
        task_types: further task types from the settings of the memory.
    """
    from rlm_mem.interchange.detection import format_names

    names = {
        "chunk-types": list(types.chunk_types if types else CHUNK_TYPES),
        "link-types": list(types.link_types if types else ALL_LINK_TYPES),
        "task-types": list(dict.fromkeys((*TASK_TYPES, *task_types))),
        "import-formats": format_names(),
    }
    bodies = (
        kind
        for operation in ROUTES
        for kind in (operation.response, operation.request, *operation.others.values())
        if kind is not None
    )
    kinds = list(dict.fromkeys(bodies))
    shown = [*kinds, *PARTS.values(), Problem]
    references, components = msgspec.json.schema_components(shown, ref_template=_REF)
    # By type, and of the parts of addresses by name
    schemas: dict[Any, Any] = dict(zip((*kinds, *PARTS), references, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for operation in ROUTES:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, schemas, components
        )
    # The fields of parameter types are inlined instead of listed as components.
    inlined = {operation.parameters.__name__ for operation in ROUTES if operation.parameters is not None}
    made = {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": PREFIX}],
        "security": [{"token": []}],
        "tags": [{"name": group} for group in dict.fromkeys(operation.group for operation in ROUTES)],
        "paths": paths,
        "components": {
            "schemas": {
                **{name: schema for name, schema in components.items() if name not in inlined},
                "Plain": _PLAIN,
            },
            "responses": {
                str(status): {
                    "description": _REASONS[status],
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
                for status in (*_REFUSALS, 412)
            },
            "securitySchemes": {"token": _TOKEN},
        },
    }
    named: dict[str, Any] = _with_names(made, names)
    return named


def _operation(
    operation: Operation, schemas: Mapping[Any, Any], components: Mapping[str, Any]
) -> dict[str, Any]:
    description = operation.description
    if operation.conditional:
        description += (
            " With the ETag of the chunk in `If-Match` it is done only if the chunk is at that revision; "
            "else the answer is 412."
        )
    shown: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.group],
        "responses": _responses(operation, schemas),
    }
    if description:
        shown["description"] = description.strip()
    parameters = _parameters(operation, schemas, components)
    if parameters:
        shown["parameters"] = parameters
    if operation.body is not None:
        required = any(field.required for field in msgspec.structs.fields(operation.body))
        shown["requestBody"] = {
            "required": required,
            "content": {_JSON: {"schema": schemas[operation.body]}},
        }
    if operation.raw_body:
        # No schema describes the bytes of a file; generators of clients need one for some type.
        content: dict[str, Any] = {media: {} for media in operation.raw_body}
        content[_BYTES] = {"schema": {"type": "string", "format": "binary"}}
        shown["requestBody"] = {"required": True, "content": content}
    return shown


def _parameters(
    operation: Operation, schemas: Mapping[Any, Any], components: Mapping[str, Any]
) -> list[dict[str, Any]]:
    found = [_parameter(name, "path", schemas[name], required=True) for name in parts_of(operation.path)]
    if operation.parameters is not None:
        shown = components[operation.parameters.__name__]
        for name, schema in shown["properties"].items():
            found.append(_parameter(name, "query", schema, required=name in shown.get("required", ())))
    if operation.tagged:
        schema = {"type": "string"}
        about = "The ETag that the client has: 304 when it is still right."
        found.append(_parameter("If-None-Match", "header", {**schema, "description": about}, required=False))
    return found


def _parameter(name: str, place: str, schema: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    """A parameter. Clients omit an optional one instead of sending null, so its schema does not allow null."""
    shown = dict(schema)
    if shown.get("default", 0) is None:
        del shown["default"]
    rest = [one for one in shown.get("anyOf", ()) if one != {"type": "null"}]
    if "anyOf" in shown and len(rest) == 1:
        del shown["anyOf"]
        shown = {**rest[0], **shown}
    made: dict[str, Any] = {"name": name, "in": place, "required": required}
    about = shown.pop("description", None)
    if about:
        made["description"] = about
    made["schema"] = shown
    return made


def _responses(operation: Operation, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if operation.response is not None:
        content[_JSON] = {"schema": schemas[operation.response]}
    content.update({media: {"schema": dict(schema)} for media, schema in operation.media.items()})
    success: dict[str, Any] = {"description": _REASONS[operation.status]}
    if content:
        success["content"] = content
    headers = _headers(operation)
    if headers:
        success["headers"] = headers
    responses: dict[str, Any] = {str(operation.status): success}
    for status, kind in operation.others.items():
        responses[str(status)] = {
            "description": _REASONS[status],
            "content": {_JSON: {"schema": schemas[kind]}},
        }
    for status, links in operation.links.items():
        responses[str(status)]["links"] = {
            name: {"operationId": name, "parameters": dict(parameters)} for name, parameters in links.items()
        }
    if operation.tagged:
        responses["304"] = {"description": _REASONS[304]}
    refusals = [*_REFUSALS, *([412] if operation.conditional else [])]
    for status in sorted(refusals):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return responses


def _headers(operation: Operation) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if operation.tagged:
        headers["ETag"] = {"description": "The revision.", "schema": {"type": "string"}, "required": True}
    if operation.paged:
        headers["Link"] = {
            "description": 'The next page, where there is one (rel="next").', "schema": {"type": "string"},
        }  # fmt: skip
    return headers


def _with_names(shown: Any, names: Mapping[str, list[str]]) -> Any:
    """The document with this memory's type names in place of their patterns, and tuples as lists."""
    if isinstance(shown, list):
        return [_with_names(part, names) for part in shown]
    if not isinstance(shown, dict):
        return shown
    if shown.get("x-names") in names:
        schema = {key: value for key, value in shown.items() if key not in ("x-names", "pattern")}
        return {**schema, "enum": names[shown["x-names"]]}
    if "prefixItems" in shown:  # a tuple, here always of one type: as a list of its length
        shown = {**shown, "items": shown["prefixItems"][0]}
        del shown["prefixItems"]
    return {key: _with_names(value, names) for key, value in shown.items()}

"""Encoding of data and problems as response bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from rlm_mem.operations.context import storable
from rlm_mem.operations.problems import MEDIA_TYPE, Problem


def encode(data: Any) -> bytes:
    """Encode data as JSON, replacing text that UTF-8 cannot encode, such as lone surrogates in remembered text."""
    try:
        return msgspec.json.encode(data, enc_hook=str)
    except UnicodeEncodeError:
        plain: Any = msgspec.to_builtins(data, enc_hook=str)
        return msgspec.json.encode(storable({"data": plain})["data"])


def problem_response(why: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A response with a problem document."""
    more = dict(headers or {})
    if why.retry_after:
        more["Retry-After"] = str(why.retry_after)
    return Response(encode(why), why.status, headers=more, media_type=MEDIA_TYPE)

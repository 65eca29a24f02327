"""Every endpoint, in the order in which the document shows them: the one place where a group is registered."""

from __future__ import annotations

from rlm_mem.operations import (
    about,
    asking,
    batches,
    care,
    chunks,
    links,
    moving,
    personas,
    records,
    reviews,
    sessions,
    tier_care,
    tiers,
)
from rlm_mem.operations.operation import Endpoint

__all__ = ["ENDPOINTS"]

ENDPOINTS: tuple[Endpoint, ...] = (
    *about.ENDPOINTS,
    *chunks.ENDPOINTS,
    *links.ENDPOINTS,
    *batches.ENDPOINTS,
    *asking.ENDPOINTS,
    *sessions.ENDPOINTS,
    *tiers.ENDPOINTS,
    *tier_care.ENDPOINTS,
    *reviews.ENDPOINTS,
    *personas.ENDPOINTS,
    *records.ENDPOINTS,
    *care.ENDPOINTS,
    *moving.ENDPOINTS,
)

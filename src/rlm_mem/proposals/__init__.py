"""Proposals: the earlier memories that a new one replaces or contradicts, found by the index and by rules.

A replacement that the text itself states ("from A to B") is applied; the others wait in the review queue
(docs/spec/links.md, Proposals).
"""

from rlm_mem.proposals.finding import Finder, Proposal

__all__ = ["Finder", "Proposal"]

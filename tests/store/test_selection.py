"""The score that the best chunks reach, found among many."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_mem.store.core.selection import kth


@pytest.mark.parametrize("size", [0, 3, 999, 30_000, 250_000])
@pytest.mark.parametrize("values", [1, 5, 1_000, 10_000_000])
def test_the_last_of_the_best_scores_is_that_of_the_sorted_ones(size: int, values: int) -> None:
    scores = np.random.default_rng(size + values).integers(0, values, size).astype(np.float32)
    for given in (scores, np.sort(scores), np.sort(scores)[::-1]):
        for limit in (1, 50, 2_000):
            for floor in (np.float32(-1), np.float32(values // 2)):
                above = np.sort(given[given > floor])
                expected = floor if len(above) < limit else above[-limit]
                assert kth(given, limit, floor) == expected

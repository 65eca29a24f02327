"""Type aliases for the arrays of the search index; numpy itself is not loaded here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Ints: TypeAlias = "npt.NDArray[np.int64]"
Frequencies: TypeAlias = "npt.NDArray[np.uint8]"
"""Counts, which stop at 255."""
Scores: TypeAlias = "npt.NDArray[np.float32]"
Slots: TypeAlias = "npt.NDArray[np.int32]"
"""Numbers that a backend assigns to the chunks of an index."""
Words: TypeAlias = "npt.NDArray[np.uint32]"

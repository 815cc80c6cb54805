"""Rows of numbers from a service's JSON, checked before they become an array."""

from typing import Any

import numpy as np
from jaxtyping import Float64

_MAX_DIMENSIONS = 65536


def matrix(rows: Any, count: int) -> Float64[np.ndarray, "texts dimensions"] | str:
    """Return `count` rows as float64, or the reason why `rows` is not that: row count, lengths, or entries.

    Non-finite entries are kept: JSON cannot hold them, and a reading reports them.
    """
    if not isinstance(rows, list) or len(rows) != count:
        return f"expected {count} rows, got {len(rows) if isinstance(rows, list) else type(rows).__name__}"
    for row in rows:
        if not isinstance(row, list) or not 0 < len(row) <= _MAX_DIMENSIONS:
            return "a row is not a non-empty list of numbers"
        if len(row) != len(rows[0]):
            return f"rows of different lengths ({len(rows[0])} and {len(row)})"
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in row):
            return "a row holds something that is not a number"
    try:
        return np.array(rows, dtype=np.float64).reshape(count, -1)
    except OverflowError:
        return "a row holds a number beyond float64"

"""What the two embedding services share: texts in batches, and rows of numbers checked before they become an array."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from engine.base.errors import ConfigError
from engine.instruments.embed.base import Embedded
from engine.instruments.service import ServiceError

_MAX_DIMENSIONS = 65536
_BATCH = 32


def embed_in_batches(
    texts: Sequence[str], address: Callable[[], str], ask: Callable[[str, list[str]], list[Any] | None]
) -> Embedded:
    """Return a service's vectors in the order of `texts`, or a reason. All batches must answer; nothing is filled in.

    `address` gives the URL; `ask(url, part)` the rows of one batch, or None where the answer holds no such rows.
    """
    rows: list[Any] = []
    try:
        url = address()
        for at in range(0, len(texts), _BATCH):
            part = list(texts[at : at + _BATCH])
            got = ask(url, part)
            if got is None or len(got) != len(part):
                return Embedded.failed("embed_malformed", f"{url}: expected {len(part)} embeddings in the answer")
            rows += got
    except ServiceError as error:
        return Embedded.failed("embed_malformed" if error.kind == "malformed" else "embed_unavailable", str(error))
    except ConfigError as error:
        return Embedded.failed("embed_unavailable", str(error))
    vectors = matrix(rows, len(texts))
    if isinstance(vectors, str):
        return Embedded.failed("embed_malformed", f"{url}: {vectors}")
    return Embedded(vectors, "ok", windows=(1,) * len(texts), truncated=(False,) * len(texts))


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

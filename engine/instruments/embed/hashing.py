"""A deterministic embedder without a model: signed feature hashing of words and word pairs.

It needs nothing but the standard library and NumPy, gives the same bits everywhere and ranks texts by shared words. It
is for tests and for a first look without a model; it knows no synonyms. Method: Weinberger et al. (2009), "Feature
Hashing for Large Scale Multitask Learning", with weights 1 + log(count).
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from engine.base.errors import ConfigError
from engine.instruments.embed.base import Embedded

_WORD = re.compile(r"\w+")
_DIMENSIONS = 512


class HashingEmbedder:
    """Signed feature hashing of lower-cased words and adjacent word pairs into a fixed number of dimensions."""

    def __init__(self, argument: str | None = None) -> None:
        """`argument` is the number of dimensions (8 to 65536); None means 512. Raises `ConfigError` otherwise."""
        if argument is not None and not (argument.isascii() and argument.isdigit() and 8 <= int(argument) <= 65536):
            raise ConfigError(f"the hashing embedder takes a number of dimensions from 8 to 65536, not {argument!r}")
        self._dimensions = int(argument) if argument else _DIMENSIONS

    @property
    def id(self) -> str:
        return f"hashing:{self._dimensions}"

    @property
    def revision(self) -> str:
        return "1"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"features": "words and pairs", "weight": "1+log(count)", "normalisation": "none"}

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return one row a text; a text without a word gives a zero row, which a reading reports as degenerate."""
        vectors = np.zeros((len(texts), self._dimensions), dtype=np.float64)
        for row, text in zip(vectors, texts, strict=True):
            words = _WORD.findall(text.lower())
            pairs = [f"{a} {b}" for a, b in pairwise(words)]
            for feature, count in Counter(words + pairs).items():
                digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                sign = 1.0 if digest[0] & 1 else -1.0
                row[int.from_bytes(digest[1:], "big") % self._dimensions] += sign * (1.0 + math.log(count))
        return Embedded(vectors, "ok", windows=(1,) * len(texts), truncated=(False,) * len(texts))

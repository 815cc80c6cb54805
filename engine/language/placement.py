"""From raw coordinates to the places of words: scale, then a grid on which every word has a cell of its own.

The grid does two things. No two words share a point, whatever the graph's symmetries; and rounding to it absorbs the
last-bit differences between linear algebra libraries, so that a pack compiles to the same numbers elsewhere.
"""

import itertools

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from packs.errors import LanguagePackError
from packs.language.authoring import spread_direction

PITCH = 2.0**-10
"""Grid pitch, and so the least distance between two words; a power of two, so that grid points are exact."""

TRANSLATION_RMS = 1.0
TRANSLATION_LIMIT = 3.0
"""Root mean square and greatest length of word translations: walks stay far from 1e-6 (DESIGN §5)."""

ROTATION_RMS = 1.2
ROTATION_LIMIT = 2.8
"""Root mean square and greatest angle of word rotations, radians: below a half-turn, so that no angle wraps, and wide
enough that the alignment of prompts covers [0, 1] for any pack."""

UNLINKED_RADIUS = 2.0
"""Where words without any relation stand, as a multiple of `TRANSLATION_RMS`: on a shell around the others."""


def scale_factor(vectors: Float[ndarray, "words 3"], rms: float, limit: float) -> float:
    """Return the factor that gives `vectors` the root mean square `rms`, or less so that none exceeds `limit`."""
    lengths = np.linalg.norm(vectors, axis=1)
    spread = float(np.sqrt(np.mean(lengths**2)))
    if spread == 0.0:
        return 1.0
    return min(rms / spread, limit / float(lengths.max()))


def place_unlinked(coordinates: Float[ndarray, "words 6"], linked: ndarray) -> Float[ndarray, "words 6"]:
    """Return the coordinates with words that the graph does not mention spread over a shell, in lexicon order."""
    placed = coordinates.copy()
    for number, word in enumerate(np.flatnonzero(~linked)):
        direction = np.array(spread_direction(number))
        placed[word] = np.concatenate([UNLINKED_RADIUS * TRANSLATION_RMS * direction, ROTATION_RMS / 2 * direction])
    return placed


def snap_apart(coordinates: Float[ndarray, "words 6"]) -> Float[ndarray, "words 6"]:
    """Return the coordinates rounded to the grid, each translation in a cell that no other word has.

    Words that round to one cell are taken in lexicon order: the first keeps the cell, the next moves to the nearest
    free one (nearest in cells, then in lexicographic order of the offset).
    """
    cells = np.rint(coordinates / PITCH).astype(np.int64)
    taken: set[tuple[int, int, int]] = set()
    for word, cell in enumerate(cells[:, :3].tolist()):
        free = _free_cell((cell[0], cell[1], cell[2]), taken)
        taken.add(free)
        cells[word, :3] = free
    return cells * PITCH


def _offsets(reach: int) -> list[tuple[int, int, int]]:
    steps = range(-reach, reach + 1)
    return sorted(
        itertools.product(steps, steps, steps), key=lambda offset: (sum(step * step for step in offset), offset)
    )


_NEAR = _offsets(3)
_FAR_REACH = 24


def _free_cell(cell: tuple[int, int, int], taken: set[tuple[int, int, int]]) -> tuple[int, int, int]:
    for offsets in (_NEAR, None):
        for step in _offsets(_FAR_REACH) if offsets is None else offsets:
            moved = (cell[0] + step[0], cell[1] + step[1], cell[2] + step[2])
            if moved not in taken:
                return moved
    raise LanguagePackError(
        f"more than {(2 * _FAR_REACH + 1) ** 3} words fall on one point: the relations do not tell them apart"
    )

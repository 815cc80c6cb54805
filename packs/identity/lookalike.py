"""Refuse boundary ids that look like a safety boundary without being one.

An identity pack may only add boundaries. Union composition keeps the five whatever a pack lists; what is refused here
is a pack that would make a reader of its boundary list believe something else: `no_fabricated_s0urce`,
`allow_identity_override`, `no_hot_path_repair_off`.
"""

from collections.abc import Iterable

from packs.errors import PackFormatError

_CONFUSABLE = str.maketrans({"0": "o", "1": "l", "i": "l", "3": "e", "4": "a", "5": "s", "7": "t", "8": "b", "9": "g"})
_CONFUSABLE_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
_POLARITY_TEXT = """
no not non never nor dont without anti un allow allows allowed permit permits enable enabled disable disabled skip
ignore ignores off on maybe deny drop dropped waive waived bypass exempt except false true yes may can keep keeps
preserve preserves break breaks
"""
_LARGEST_TYPO = 2
"""Insertions, deletions, substitutions and swaps of neighbours that still pass for the same words."""
_LETTERS_PER_TYPO = 5
_SHORTEST_FRAGMENT = 8
"""Ids of a stricter safety pack may be short: `no_harm` must not take `no_charm_offensive` for its look-alike."""


def refuse_lookalikes(boundary_ids: Iterable[str], safety_ids: frozenset[str], *, pack_id: str) -> None:
    """Raise `PackFormatError` if one of `boundary_ids` resembles one of `safety_ids` without being equal to one."""
    for boundary in boundary_ids:
        if boundary in safety_ids:
            continue
        for safety in sorted(safety_ids):
            if resembles(boundary, safety):
                raise PackFormatError(f"{pack_id}: the boundary {boundary} looks like the safety boundary {safety}")


def resembles(boundary: str, safety: str) -> bool:
    """Return whether `boundary` could be read as `safety`, its negation, or a variant of it."""
    words, safety_words = _content_words(boundary), _content_words(safety)
    core, safety_core = "".join(words), "".join(safety_words)
    if set(safety_words) <= set(words) or (len(safety_core) >= _SHORTEST_FRAGMENT and safety_core in core):
        return True
    typos = min(_LARGEST_TYPO, len(safety_core) // _LETTERS_PER_TYPO)
    # Folding can also tear a typo apart ("correcion": cl becomes d), so the plain letters are compared as well.
    pairs = ((boundary, safety), (skeleton(boundary), skeleton(safety)), (core, safety_core))
    return any(edit_distance(ours, theirs) <= typos for ours, theirs in pairs)


def skeleton(text: str) -> str:
    """Return `text` with characters that are easily taken for each other made equal, and underscores dropped."""
    folded = text.translate(_CONFUSABLE).replace("_", "")
    for pair, single in _CONFUSABLE_PAIRS:
        folded = folded.replace(pair, single)
    return folded


_POLARITY = frozenset(skeleton(word) for word in _POLARITY_TEXT.split())


def _content_words(text: str) -> tuple[str, ...]:
    """Return the skeletons of the words that do more than affirm or negate; all words if none does."""
    words = [skeleton(word) for word in text.split("_") if word]
    content = tuple(word for word in words if word not in _POLARITY)
    return content or tuple(words)


def edit_distance(left: str, right: str) -> int:
    """Return the optimal string alignment distance: insert, delete, substitute, swap two neighbours."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        above, row = row, [i]
        for j, b in enumerate(right, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = above
    return row[-1]

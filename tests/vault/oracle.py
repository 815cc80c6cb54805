"""Recall by the book, in NumPy: every distance, one sort by (self first, distance, index)."""

import numpy as np


def recall(points, motors, query_point, query_motor, eligible, k):
    """Indices and distances of the first k eligible entries; -1 and infinity past the last."""
    squares = ((points - query_point) ** 2).sum(axis=1)
    own = np.zeros(len(points), bool)
    if query_motor is not None:
        own = (motors == query_motor).all(axis=1) | (motors == -query_motor).all(axis=1)
    order = [i for i in np.lexsort((np.arange(len(points)), squares, ~own)) if eligible[i]][:k]
    distances = [0.0 if own[i] else np.sqrt(squares[i]) for i in order]
    missing = k - len(order)
    return np.array(order + [-1] * missing), np.array(distances + [np.inf] * missing)

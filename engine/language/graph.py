"""The relation graph of a pack as arrays: directed typed edges for the walk, undirected adjacency for the geometry."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from packs.language.model import LanguagePack, RelationType


@dataclass(frozen=True)
class TypedEdges:
    """Directed edges of a pack. A relation gives one edge, and a second one back if it has an inverse or is symmetric.

    `edges[i]` is (head, type, tail) with the type an index into `names`; `source[i]` is the index of the pack's
    relation that edge `i` rests on, whichever way it is read.
    """

    names: tuple[str, ...]
    edges: Int[ndarray, "edges 3"]
    source: Int[ndarray, " edges"]


def directed_names(types: Sequence[RelationType]) -> tuple[str, ...]:
    """Return the names of all directed relation types: the relations in the pack's order, then the named inverses."""
    return (*(kind.relation for kind in types), *(kind.inverse for kind in types if kind.inverse))


def typed_edges(pack: LanguagePack) -> TypedEdges:
    """Return the directed edges of `pack` in the order of its relations, each followed by its inverse if any."""
    words = {lemma: number for number, lemma in enumerate(pack.lemmas)}
    names = directed_names(pack.relation_types)
    number_of = {name: number for number, name in enumerate(names)}
    kinds = {kind.relation: kind for kind in pack.relation_types}
    edges, source = [], []
    for number, relation in enumerate(pack.relations):
        head, tail, kind = words[relation.head], words[relation.tail], kinds[relation.relation]
        edges.append((head, number_of[kind.relation], tail))
        source.append(number)
        if kind.symmetric or kind.inverse:
            edges.append((tail, number_of[kind.inverse or kind.relation], head))
            source.append(number)
    return TypedEdges(
        names=names,
        edges=np.array(edges, dtype=np.int64).reshape(-1, 3),
        source=np.array(source, dtype=np.int64),
    )


def pair_array(pack: LanguagePack) -> Int[ndarray, "relations 2"]:
    """Return (head, tail) of every relation, in the pack's order."""
    words = {lemma: number for number, lemma in enumerate(pack.lemmas)}
    pairs = [(words[relation.head], words[relation.tail]) for relation in pack.relations]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def adjacency_matrix(pairs: Int[ndarray, "pairs 2"], size: int) -> Float[ndarray, "size size"]:
    """Return the symmetric 0/1 adjacency of undirected pairs: several relations between two words count once."""
    adjacency = np.zeros((size, size))
    adjacency[pairs[:, 0], pairs[:, 1]] = 1.0
    adjacency[pairs[:, 1], pairs[:, 0]] = 1.0
    np.fill_diagonal(adjacency, 0.0)
    return adjacency


def component_labels(adjacency: Float[ndarray, "size size"]) -> Int[ndarray, " size"]:
    """Return the connected component of each word, numbered by first appearance."""
    size = len(adjacency)
    labels = np.full(size, -1, dtype=np.int64)
    count = 0
    for seed in range(size):
        if labels[seed] >= 0:
            continue
        labels[seed] = count
        frontier = [seed]
        while frontier:
            word = frontier.pop()
            fresh = np.flatnonzero((adjacency[word] > 0) & (labels < 0))
            labels[fresh] = count
            frontier.extend(fresh.tolist())
        count += 1
    return labels

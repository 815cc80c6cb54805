"""Digests of compiled vocabularies: what a report's trace, a checkpoint and a rerun compare."""

import hashlib

import numpy as np

from engine.language.vocabulary import Vocabulary

_ARRAYS = (
    "coordinates",
    "motors",
    "relation_motors",
    "edges",
    "edge_relations",
    "operator_motors",
    "root_motors",
    "roots",
    "function_motors",
)


def vocabulary_digest(vocabulary: Vocabulary) -> str:
    """Return the SHA-256 of every number and name in the vocabulary: equal bit for bit or different."""
    digest = hashlib.sha256()
    for names in (vocabulary.lemmas, vocabulary.relation_types, vocabulary.operators):
        digest.update("\n".join(names).encode() + b"\0")
    for name in _ARRAYS:
        array = np.asarray(getattr(vocabulary, name))
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def coordinates_digest(vocabulary: Vocabulary) -> str:
    """Return the SHA-256 of words and grid coordinates: the part that does not depend on a platform's sine."""
    names = "\n".join(vocabulary.lemmas).encode() + b"\0"
    return hashlib.sha256(names + np.asarray(vocabulary.coordinates).tobytes()).hexdigest()

"""Sentence embedders behind one protocol (`base`); each implementation is a file of its own."""

from engine.instruments.embed.base import Embedded as Embedded
from engine.instruments.embed.base import Embedder as Embedder
from engine.instruments.embed.base import embedder_digest as embedder_digest
from engine.instruments.embed.base import load_embedder as load_embedder

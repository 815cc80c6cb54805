"""Generators behind one protocol (`base`); each implementation is a file of its own."""

from engine.instruments.synthesize.base import ClauseLineage as ClauseLineage
from engine.instruments.synthesize.base import Generated as Generated
from engine.instruments.synthesize.base import GenerationRequest as GenerationRequest
from engine.instruments.synthesize.base import Generator as Generator
from engine.instruments.synthesize.base import load_generator as load_generator

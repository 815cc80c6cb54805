"""Bivectors by name of plane, and the named special cases that exp and log are tried on."""

import numpy as np
from numpy.typing import NDArray

from engine.algebra import tables

PLANES = tuple(tables.EVEN_NAMES[1:11])
PI = float(np.pi)


def bivector(**planes: float) -> NDArray:
    """The bivector with these coefficients, for instance `bivector(e12=1.0, e34=0.5)`."""
    return np.array([planes.get(name, 0.0) for name in PLANES])


SIMPLE = {
    "zero": bivector(),
    "rotation": bivector(e12=0.3),
    "rotation by pi": bivector(e12=PI / 2),
    "rotation nearly all around": bivector(e23=PI - 1e-9),
    "tiny rotation": bivector(e12=1e-9),
    "boost": bivector(e15=3.0),
    "far boost": bivector(e25=8.0, e35=6.0),
    "dilation": bivector(e45=0.7),
    "translation": bivector(e14=-5.0, e15=-5.0, e34=2.0, e35=2.0),
    "tiny translation": bivector(e14=1e-12, e15=1e-12),
    "far translation": bivector(e14=5e3, e15=5e3),
    "transversion": bivector(e24=0.4, e25=-0.4),
}
DOUBLE = {
    "isoclinic": bivector(e12=1.0, e34=1.0),
    "nearly isoclinic": bivector(e12=1.0, e34=1.0 + 1e-7),
    "left and right": bivector(e12=0.4, e34=-0.4),
    "tiny isoclinic": bivector(e12=1e-9, e34=1e-9),
    "isoclinic by pi": bivector(e12=PI / 2, e34=PI / 2),
    "nearly isoclinic by pi": bivector(e12=PI / 2 - 1e-9, e34=PI / 2),
    "angles that sum to pi": bivector(e12=2.0, e34=PI - 2.0),
    "angles that nearly sum to pi": bivector(e12=2.0, e34=PI - 2.0 - 1e-8),
    "two rotations": bivector(e12=0.3, e34=2.7),
    "screw": bivector(e12=1.3, e34=2.0, e35=2.0),
    "screw beyond pi": bivector(e12=2.3, e34=2.0, e35=2.0),
    "boost and rotation": bivector(e12=3.0, e45=2.0),
    "small boost and rotation": bivector(e12=1e-3, e45=1e-3),
    "boost and tiny rotation": bivector(e12=1e-12, e45=1.0),
    "at the edge of two forms": bivector(e12=1.0, e34=1.0 / 32.0),
}
PRINCIPAL = SIMPLE | DOUBLE
"""Bivectors whose sum and difference of rotation angles lie within [-π, π]: log(exp(b)) is b, but for those at π."""

AMBIGUOUS = frozenset(
    {"isoclinic by pi", "angles that sum to pi", "nearly isoclinic by pi", "angles that nearly sum to pi"}
)
"""Cases at or within rounding of the branch cut, where the direction of the logarithm is not determined."""

"""Rigid motors T(x) R(r) of words, in NumPy: made from six coordinates and read back from sixteen coefficients.

T(x) = 1 - x n_inf / 2 and R(r) = exp(-|r| B / 2), where B is the unit plane dual to r in three dimensions
(B = r1 e23 - r2 e13 + r3 e12 over |r|): a right-handed turn by |r| about r (Dorst et al. 2007, chapters 10 and 13).
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from engine.algebra.tables import EVEN_INDEX, EVEN_NAMES, EVEN_REVERSE_SIGNS, dense_table

_PRODUCT = dense_table(EVEN_NAMES)
_PLANE = np.array([EVEN_INDEX["e23"], EVEN_INDEX["e13"], EVEN_INDEX["e12"]])
_PLANE_SIGNS = np.array([1.0, -1.0, 1.0])
_AT_E4 = np.array([EVEN_INDEX["e14"], EVEN_INDEX["e24"], EVEN_INDEX["e34"]])
_AT_E5 = np.array([EVEN_INDEX["e15"], EVEN_INDEX["e25"], EVEN_INDEX["e35"]])


def multiply(a: Float[ndarray, "*batch 16"], b: Float[ndarray, "*batch 16"]) -> Float[ndarray, "*batch 16"]:
    """Return the even product of two arrays of motors."""
    return np.einsum("...i,...j,ijk->...k", a, b, _PRODUCT)


def reverse(m: Float[ndarray, "*batch 16"]) -> Float[ndarray, "*batch 16"]:
    """Return the reverse of each motor."""
    return m * EVEN_REVERSE_SIGNS


def rotors(vectors: Float[ndarray, "*batch 3"]) -> Float[ndarray, "*batch 16"]:
    """Return the rotors that turn by |r| radians about r."""
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    # sinc(y) = sin(pi y) / (pi y), finite at zero: sin(angle/2)/angle = sinc(angle/2pi)/2.
    half_sine = np.sinc(angle / (2 * np.pi)) / 2
    motor = np.zeros((*vectors.shape[:-1], 16))
    motor[..., 0] = np.cos(angle[..., 0] / 2)
    motor[..., _PLANE] = -half_sine * vectors * _PLANE_SIGNS
    return motor


def translators(vectors: Float[ndarray, "*batch 3"]) -> Float[ndarray, "*batch 16"]:
    """Return the translators by each vector."""
    motor = np.zeros((*vectors.shape[:-1], 16))
    motor[..., 0] = 1.0
    motor[..., _AT_E4] = -vectors / 2
    motor[..., _AT_E5] = -vectors / 2
    return motor


def motors_from_coordinates(coordinates: Float[ndarray, "*batch 6"]) -> Float[ndarray, "*batch 16"]:
    """Return T(x) R(r) for coordinates (x, r): translation in scene units, rotation vector in radians."""
    return multiply(translators(coordinates[..., :3]), rotors(coordinates[..., 3:]))


def rotation_vectors(motor: Float[ndarray, "*batch 16"]) -> Float[ndarray, "*batch 3"]:
    """Return the rotation vectors of rigid motors, of length at most pi (F and -F are the same motion)."""
    sign = np.where(motor[..., :1] < 0, -1.0, 1.0)
    sine = -sign * motor[..., _PLANE] * _PLANE_SIGNS
    length = np.linalg.norm(sine, axis=-1, keepdims=True)
    angle = 2 * np.arctan2(length, np.abs(motor[..., :1]))
    return np.where(length > 0, angle / np.where(length > 0, length, 1.0), 2.0) * sine


def translation_vectors(motor: Float[ndarray, "*batch 16"]) -> Float[ndarray, "*batch 3"]:
    """Return where rigid motors carry the origin: the vector part of M reverse(R), R being M without translation."""
    rotor = np.zeros_like(motor)
    rotor[..., 0] = motor[..., 0]
    rotor[..., _PLANE] = motor[..., _PLANE]
    return -2 * multiply(motor, reverse(rotor))[..., _AT_E4]


def coordinates_from_motors(motor: Float[ndarray, "*batch 16"]) -> Float[ndarray, "*batch 6"]:
    """Return (x, r) of rigid motors: the inverse of `motors_from_coordinates` up to whole turns."""
    return np.concatenate([translation_vectors(motor), rotation_vectors(motor)], axis=-1)


def quaternions(motor: Float[ndarray, "*batch 16"]) -> Float[ndarray, "*batch 4"]:
    """Return the rotation of rigid motors as unit quaternions (scalar, then the three plane coefficients)."""
    return np.concatenate([motor[..., :1], motor[..., _PLANE] * _PLANE_SIGNS], axis=-1)

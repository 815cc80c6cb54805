"""The point a motor carries the origin to, computed inside the even algebra.

`X = F n_o reverse(F)` is a vector, hence odd. Times e4 it is even: `X e4 = F (n_o e4) (e4 reverse(F) e4)`, and
conjugating an even element by e4 flips the sign of the blades that contain e4. With `X = x1 e1 + ... + x5 e5` the
product's scalar is x4, its e14, e24, e34 are x1, x2, x3 and its e45 is -x5.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from engine.algebra import even_reverse
from engine.algebra.product import even_product_kernel

# Even blades: 1 | e12 e13 e14 e15 e23 e24 e25 e34 e35 e45 | e1234 e1235 e1245 e1345 e2345; those with e4 flip.
_FLIPS = np.array([1, 1, 1, -1, 1, 1, -1, 1, -1, 1, -1, -1, 1, -1, -1, -1], np.float64)


def carried_point(motor: Float[Array, "*batch 16"]) -> Float[Array, "*batch 3"]:
    """Return the Euclidean coordinates of the point to which a motor carries the origin.

    Not finite where the motor is not, or where it carries the origin to infinity.
    """
    origin = np.zeros(16)
    origin[0] = origin[10] = -0.5  # n_o e4 = (e5 - e4) e4 / 2 = -(1 + e45) / 2
    carried = even_product_kernel(motor, jnp.broadcast_to(jnp.asarray(origin), motor.shape))
    flips = jnp.broadcast_to(jnp.asarray(_FLIPS), motor.shape)
    image = even_product_kernel(carried, flips * even_reverse(motor))
    weight = -image[..., 10] - image[..., 0]  # -X . n_inf = x5 - x4
    return jnp.stack([image[..., 3], image[..., 6], image[..., 8]], axis=-1) / weight[..., None]

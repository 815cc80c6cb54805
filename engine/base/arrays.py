"""Names of the recurring array shapes (jaxtyping). Batch dimensions lead; coefficients are the last axis."""

from typing import TypeAlias

from jaxtyping import Array, Bool, Float, Int

Multivector: TypeAlias = Float[Array, "*batch 32"]
"""32 coefficients ordered by grade, then lexicographically: 1, e1..e5, e12, e13, ..., e12345."""

Motor: TypeAlias = Float[Array, "*batch 16"]
"""The 16 even coefficients (grades 0, 2, 4) in the same order."""

Bivector: TypeAlias = Float[Array, "*batch 10"]
"""The grade-2 coefficients e12, e13, e14, e15, e23, e24, e25, e34, e35, e45."""

Vector3: TypeAlias = Float[Array, "*batch 3"]
Scalar: TypeAlias = Float[Array, "*batch"]
Flag: TypeAlias = Bool[Array, "*batch"]
Index: TypeAlias = Int[Array, "*batch"]

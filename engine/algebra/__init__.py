"""Conformal geometric algebra Cl(4,1): products, versors, exponential and logarithm, points and blades.

Arrays are float64 with batch axes first; multivectors have 32 coefficients ordered by grade, then lexicographically,
motors the 16 even ones, bivectors 10. The conventions are in docs/conventions.md.
"""

from engine.algebra.blade import dual as dual
from engine.algebra.blade import meet as meet
from engine.algebra.blade import undual as undual
from engine.algebra.exponential import exp as exp
from engine.algebra.interpolation import motor_power as motor_power
from engine.algebra.interpolation import slerp as slerp
from engine.algebra.interpolation import square_root as square_root
from engine.algebra.logarithm import log as log
from engine.algebra.motor import dilator as dilator
from engine.algebra.motor import identity_motor as identity_motor
from engine.algebra.motor import motor_from_frames as motor_from_frames
from engine.algebra.motor import motor_from_points as motor_from_points
from engine.algebra.motor import rotor as rotor
from engine.algebra.motor import translator as translator
from engine.algebra.motor import transversion as transversion
from engine.algebra.point import distance as distance
from engine.algebra.point import embed_point as embed_point
from engine.algebra.point import point_coordinates as point_coordinates
from engine.algebra.point import squared_distance as squared_distance
from engine.algebra.product import apply as apply
from engine.algebra.product import clifford_conjugate as clifford_conjugate
from engine.algebra.product import closure_residual as closure_residual
from engine.algebra.product import even_product as even_product
from engine.algebra.product import even_reverse as even_reverse
from engine.algebra.product import geometric_product as geometric_product
from engine.algebra.product import grade_involution as grade_involution
from engine.algebra.product import grade_projection as grade_projection
from engine.algebra.product import inner as inner
from engine.algebra.product import left_contraction as left_contraction
from engine.algebra.product import outer_product as outer_product
from engine.algebra.product import reverse as reverse
from engine.algebra.product import right_contraction as right_contraction
from engine.algebra.product import sandwich as sandwich
from engine.algebra.product import to_even as to_even
from engine.algebra.product import to_multivector as to_multivector

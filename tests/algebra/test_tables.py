"""Tables: order of the blades, signs from the signature, tables frozen."""

import numpy as np
import pytest

from engine.algebra import tables


def test_blades_are_ordered_by_grade_then_lexicographically() -> None:
    assert tables.BLADE_NAMES[:8] == ("1", "e1", "e2", "e3", "e4", "e5", "e12", "e13")
    assert tables.BLADE_NAMES[15:18] == ("e45", "e123", "e124")
    assert tables.BLADE_NAMES[-2:] == ("e2345", "e12345")
    assert tables.EVEN_NAMES[1:11] == ("e12", "e13", "e14", "e15", "e23", "e24", "e25", "e34", "e35", "e45")
    assert sorted(tables.BLADES) == list(range(32))


@pytest.mark.parametrize(("axis", "square"), [(0, 1), (1, 1), (2, 1), (3, 1), (4, -1)])
def test_generators_square_to_the_signature(axis: int, square: int) -> None:
    assert tables.blade_sign(1 << axis, 1 << axis) == square


def test_generators_anticommute_and_the_pseudoscalar_is_central() -> None:
    for i in range(5):
        for j in range(i):
            assert tables.blade_sign(1 << i, 1 << j) == -tables.blade_sign(1 << j, 1 << i)
    for mask in range(32):
        assert tables.blade_sign(mask, tables.PSEUDOSCALAR) == tables.blade_sign(tables.PSEUDOSCALAR, mask)
    assert tables.blade_sign(tables.PSEUDOSCALAR, tables.PSEUDOSCALAR) == -1


def test_blade_products_are_associative() -> None:
    for a in range(32):
        for b in range(32):
            for c in range(32):
                left = tables.blade_sign(a, b) * tables.blade_sign(a ^ b, c)
                assert left == tables.blade_sign(b, c) * tables.blade_sign(a, b ^ c)


def test_even_table_is_the_full_table_restricted() -> None:
    for j, left in enumerate(tables.EVEN_BLADES):
        for k, target in enumerate(tables.EVEN_BLADES):
            right = tables.EVEN_BLADES[tables.EVEN_GEOMETRIC.partner[j, k]]
            assert left ^ right == target
            assert tables.EVEN_GEOMETRIC.signs[j, k] == tables.blade_sign(left, right)


def test_tables_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        tables.EVEN_GEOMETRIC.signs[0, 0] = 2.0


def test_reverse_signs_follow_the_grades() -> None:
    expected = {0: 1, 1: 1, 2: -1, 3: -1, 4: 1, 5: 1}
    assert [expected[int(grade)] for grade in tables.GRADES] == tables.REVERSE_SIGNS.astype(int).tolist()
    assert np.array_equal(tables.CONJUGATE_SIGNS, tables.REVERSE_SIGNS * tables.INVOLUTION_SIGNS)

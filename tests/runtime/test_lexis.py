"""A language at run time: edges both ways with their citations, rigid words, and the typed end of a walk."""

import numpy as np
import pytest

from engine.base.errors import InnerLoopExhaustion, NotAVersorError
from engine.generate.surface import Step
from engine.runtime.lexis import _require_rigid


def test_every_relation_can_be_walked_from_both_ends_and_leads_back_to_itself(runtime):
    lexis, pack = runtime.lexis, runtime.composition.language
    types = len(pack.relation_types)
    heads, tails = np.asarray(lexis.tables.edge_heads), np.asarray(lexis.tables.edge_tails)
    kinds = np.asarray(lexis.tables.edge_relations)
    assert len(lexis.sources) == 2 * len(pack.relations)
    for row in range(0, len(lexis.sources), 7):
        step = lexis.step(row)
        relation = pack.relations[step.relation]
        ends = (lexis.lemmas[heads[row]], lexis.lemmas[tails[row]])
        assert ends == ((relation.tail, relation.head) if step.backward else (relation.head, relation.tail))
        assert (kinds[row] >= types) == step.backward
        assert pack.relation_types[kinds[row] % types].relation == relation.relation
    assert {Step(0, False), Step(0, True)} <= {lexis.step(row) for row in range(len(lexis.sources))}


def test_a_word_that_is_no_rigid_motion_is_refused():
    motors = np.zeros((2, 16))
    motors[:, 0] = 1.0
    _require_rigid(motors, ("fine", "odd"))
    motors[1, 10] = 0.5  # e45: a dilation
    with pytest.raises(NotAVersorError, match="the word odd"):
        _require_rigid(motors, ("fine", "odd"))


def test_a_walk_without_an_admissible_word_says_where_and_what_it_rejected(runtime):
    table = runtime.evaluate(["Is a mouse a kind of theorem?", "What is truth?"])
    error = table.exhaustions[0]
    assert isinstance(error, InnerLoopExhaustion)
    assert (error.reason, error.step) == ("outside_region", 0)
    assert "to theorem" in error.region
    assert error.rejected
    assert table.rows[0]["refusal"] == "not_grounded"
    assert table.exhaustions[1] is None

"""Every typed error is a `CoreError`, is also a standard type, and survives a pickle round trip."""

import pickle

import pytest

from engine.base import errors
from packs.errors import CoreError


def subclasses(kind: type) -> set[type]:
    direct = {
        child for child in kind.__subclasses__() if child.__module__.startswith(("engine", "packs", "experiments"))
    }
    return direct.union(*(subclasses(child) for child in direct))


@pytest.mark.parametrize("kind", sorted(subclasses(CoreError), key=lambda kind: kind.__name__))
def test_errors_subclass_a_standard_type(kind: type) -> None:
    standard = [base for base in kind.__mro__ if base.__module__ == "builtins"]
    assert any(base not in (kind, Exception, BaseException, object) for base in standard)


def test_errors_survive_pickling_with_their_attributes() -> None:
    closure = errors.VersorClosureError("open", sample=3, step=7, residual=2e-6, norm=4.0, cause="not a versor")
    walk = errors.InnerLoopExhaustion("stuck", reason="no_neighbour", region="any", step=2, rejected=("truth",))
    for error in (closure, walk):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)
        assert copy.__dict__ == error.__dict__

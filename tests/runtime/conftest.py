"""Runtimes of the shipped packs, made once for the whole folder."""

import dataclasses

import pytest

from engine.runtime import Runtime, runtime_from
from engine.runtime.compose import compose_manifold
from packs.identity.loader import load_identity_manifold

IDENTITIES = ("default_general_v1", "precision_first_v1", "generosity_first_v1")


def with_identity(runtime: Runtime, identity: str) -> Runtime:
    """Return a runtime of another identity; reading the language pack again would only cost time."""
    pack = load_identity_manifold(identity)
    manifold = compose_manifold(pack, runtime.composition.safety)
    return runtime_from(dataclasses.replace(runtime.composition, identity=pack, manifold=manifold))


@pytest.fixture(scope="session")
def runtime():
    """The default identity in English, loaded as a user loads it."""
    return Runtime.load(IDENTITIES[0])


@pytest.fixture(scope="session")
def runtimes(runtime):
    """The three shipped identities in English."""
    return (runtime, *(with_identity(runtime, identity) for identity in IDENTITIES[1:]))

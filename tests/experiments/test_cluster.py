"""What a follower makes of what it is told: it comes over a network, and may be anything."""

import pytest

from engine.base.errors import ClusterError, CoreError
from experiments import cluster
from experiments.cluster import Cluster, told
from experiments.job import follow_part

SETTINGS = {"identity": "default_general_v1", "language": "en"}


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"settings": []},
        {"settings": {}, "same": {}, "prompts": 3},
        {"settings": SETTINGS, "same": 3, "prompts": []},
        {"settings": SETTINGS, "same": {}, "prompts": [["one"]]},
        {"settings": SETTINGS, "same": {}, "prompts": [5]},
        {"settings": {**SETTINGS, "safety": "off"}, "same": {}, "prompts": []},
        {"settings": {**SETTINGS, "steps": "many"}, "same": {}, "prompts": []},
        {"settings": {**SETTINGS, "identity": "../../etc"}, "same": {}, "prompts": []},
        {"settings": {**SETTINGS, "devices": 10**9}, "same": {}, "prompts": []},
        {"settings": SETTINGS, "same": {"safety_sha256": "0" * 64}, "prompts": [["one", "What is truth?"]]},
        {"settings": SETTINGS, "same": {}, "prompts": [["one", "What is truth?"]]},
    ],
)
def test_a_follower_refuses_what_it_does_not_understand_or_does_not_share(message: dict[str, object]) -> None:
    with pytest.raises(CoreError):
        follow_part(message)


@pytest.mark.parametrize("data", [b"{", b"[]", b"null", b"7", b"\xff", b"\x80\x04."])
def test_what_is_no_object_is_refused(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(cluster, "_broadcast", lambda _: data)
    with pytest.raises(ClusterError, match="the leading process said"):
        told()


def test_nothing_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_broadcast", lambda _: cluster.STOP)
    assert told() is None


@pytest.mark.parametrize(
    "values",
    [
        ("host", 2, 0),
        ("host:0", 2, 0),
        ("host:65536", 2, 0),
        ("ho st:1", 2, 0),
        ("host:1", 1, 0),
        ("host:1", 5000, 0),
        ("host:1", 2, 2),
        ("host:1", 2, -1),
        ("host:1", 2, 0, 0),
        ("host:1", 2, 0, 4000),
    ],
)
def test_a_place_that_cannot_be_is_refused(values: tuple[object, ...]) -> None:
    with pytest.raises(CoreError):
        Cluster(*values)

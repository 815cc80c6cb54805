"""The override table, in process: what is refused, with which error, and what passes as it was meant."""

import pickle
from collections.abc import Sequence

import pytest

from experiments.overrides import check_command_line, check_environment, check_job_overrides
from packs.errors import CoreError, SafetyOverrideError
from tests.attacks import overrides_table as table

INSTALLED = {"identity": ("default_general_v1", "generosity_first_v1", "mine"), "language": ("en",)}


def installed(group: str, packs_path: str | None) -> Sequence[str]:
    return INSTALLED[group]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"), [row[1:] for row in table.REFUSED], ids=[r[0] for r in table.REFUSED]
)
def test_is_refused(arguments: list[str], kind: type[Exception], words: str) -> None:
    with pytest.raises(CoreError) as refusal:
        check_command_line(arguments, installed)
    assert type(refusal.value) is kind, refusal.value
    assert words in str(refusal.value)
    copy = pickle.loads(pickle.dumps(refusal.value))
    assert (type(copy), str(copy)) == (kind, str(refusal.value))


@pytest.mark.parametrize(
    ("arguments", "expected"), [row[1:] for row in table.ACCEPTED], ids=[r[0] for r in table.ACCEPTED]
)
def test_is_accepted(arguments: list[str], expected: dict[str, tuple[str, ...]]) -> None:
    line = check_command_line(arguments, installed)
    for key, items in expected.items():
        assert line.values[key].items == items


@pytest.mark.parametrize(
    "environment", [row[1] for row in table.ENVIRONMENT_REFUSED], ids=[r[0] for r in table.ENVIRONMENT_REFUSED]
)
def test_variable_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(SafetyOverrideError):
        check_environment(environment)


@pytest.mark.parametrize(
    "environment", [row[1] for row in table.ENVIRONMENT_ACCEPTED], ids=[r[0] for r in table.ENVIRONMENT_ACCEPTED]
)
def test_variable_is_accepted(environment: dict[str, str]) -> None:
    check_environment(environment)


def test_the_table_is_large_and_mostly_refusals() -> None:
    names = [row[0] for row in table.REFUSED]
    assert len(set(names)) == len(names)
    refused = len(names) + len(table.ENVIRONMENT_REFUSED)
    total = refused + len(table.ACCEPTED) + len(table.ENVIRONMENT_ACCEPTED)
    assert total >= 120
    assert refused >= 0.7 * total


def test_a_recorded_command_line_reads_back_as_itself() -> None:
    arguments = ["-m", "identity=glob(*)", "seed=range(0,3)", "alpha=0.1,0.2", "prompts=/o'neil/a b.txt"]
    line = check_command_line(arguments, installed)
    again = check_command_line([*line.recorded(), "-m"], installed)
    assert list(again.jobs()) == list(line.jobs())
    assert len(list(line.jobs())) == 18


@pytest.mark.parametrize(
    "override", ["safety=x", "hydra.run.dir=/x", "identity=../x", "seed=1,2", "+seed=1", "resume=1,2"]
)
def test_a_job_refuses_overrides_that_we_never_write(override: str) -> None:
    with pytest.raises(CoreError):
        check_job_overrides([override])


def test_a_job_accepts_what_we_write() -> None:
    line = check_command_line(["prompts=/data/a,b.txt", "seed=3", "identity=mine"], installed)
    check_job_overrides(line.hydra_arguments())

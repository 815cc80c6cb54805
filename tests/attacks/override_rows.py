"""The override table of the command line and the environment, as rows of the report."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from engine.base.command import one_line
from experiments.overrides import check_command_line, check_environment
from packs.errors import SafetyOverrideError
from tests.attacks import overrides_table as table
from tests.attacks.rows import Row

INSTALLED: Mapping[str, tuple[str, ...]] = {
    "identity": ("default_general_v1", "generosity_first_v1", "mine"),
    "language": ("en",),
}


def rows() -> Iterator[Row]:
    """Yield every row of the table; what is accepted has to come out with the values that were meant."""
    for name, arguments, expected, words in table.REFUSED:
        yield Row("command line", name, expected, _refusal(arguments, words))
    for name, arguments, values in table.ACCEPTED:
        yield Row("command line controls", name, None, _acceptance(arguments, values))
    for name, environment in table.ENVIRONMENT_REFUSED:
        yield Row("command line variables", name, SafetyOverrideError, lambda f, e=environment: check_environment(e))
    for name, environment in table.ENVIRONMENT_ACCEPTED:
        yield Row("command line variables", name, None, lambda f, e=environment: check_environment(e))


def _installed(group: str, packs_path: str | None) -> Sequence[str]:
    return INSTALLED[group]


def _refusal(arguments: list[str], words: str) -> Callable[[Path], object]:
    def act(folder: Path) -> object:
        try:
            return check_command_line(arguments, _installed)
        except Exception as error:
            if words not in str(error):
                raise AssertionError(f"the refusal does not say {words!r}: {error}") from error
            # As the commands print it: with control and invisible characters escaped.
            raise type(error)(one_line(error)) from None

    return act


def _acceptance(arguments: list[str], values: Mapping[str, tuple[str, ...]]) -> Callable[[Path], object]:
    def act(folder: Path) -> None:
        line = check_command_line(arguments, _installed)
        for key, items in values.items():
            assert line.values[key].items == items, (key, line.values[key])

    return act

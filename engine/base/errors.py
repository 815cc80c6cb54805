"""Typed errors of the engine. `CoreError` itself lives in `packs.errors`, below everything."""

from typing import Any

from packs.errors import CoreError as CoreError


class ConfigError(CoreError, ValueError):
    """A command, configuration or argument is wrong in a way its author can mend."""


class UsageError(ConfigError):
    """The command line itself is malformed: exit code 2."""


class PrecisionError(CoreError, TypeError):
    """x64 is off, or an array has a dtype that the engine refuses to cast."""


class ShapeError(CoreError, ValueError):
    """An array has a shape that the operation is not defined on."""


class NotAVersorError(CoreError, ValueError):
    """Input that should be an even, grade-preserving unit versor is not."""


class NoLogarithmError(CoreError, ArithmeticError):
    """A motor has no logarithm in the bivectors."""


class OperatorRangeError(CoreError, ValueError):
    """An operator whose own coefficients are too large to hold the closure tolerance in float64."""


class DeviceError(CoreError, RuntimeError):
    """A device was asked for that this machine or this installation does not have."""


class ClusterError(CoreError, RuntimeError):
    """A process of a cluster did not come, was lost, or was started with something else than the others."""


class RecordError(CoreError, RuntimeError):
    """A record or run cannot be read, or does not say what its hashes say."""


class PatternFileError(UsageError):
    """A pattern file cannot be read, or is neither a JSON list nor JSONL of rows with a text."""


class StagingError(CoreError, ValueError):
    """A staged amendment is incomplete, altered, or was made for a text that is no longer in force."""


class RatificationError(CoreError, RuntimeError):
    """A pack did not pass its course, or its version does not fit what changed in it."""


class CheckpointMismatchError(CoreError, ValueError):
    """A checkpoint is damaged or was written for something else than what would be restored into."""


class CheckpointWriteError(CoreError, OSError):
    """A checkpoint could not be written; what was reported as saved before is untouched."""


class RunWriteError(CoreError, OSError):
    """A file of a run could not be written; files that were written before are whole."""


class CheckpointLockedError(CoreError, BlockingIOError):
    """Another writer holds the checkpoint folder."""


class VersorClosureError(CoreError, ArithmeticError):
    """A field state left the versor manifold: the residual reached the tolerance, or was not finite.

    Attributes: `sample` (flat index in the batch), `step`, `residual`, `norm` (largest coefficient norm), `cause`.
    """

    def __init__(
        self,
        message: str,
        *,
        sample: int | None = None,
        step: int | None = None,
        residual: float | None = None,
        norm: float | None = None,
        cause: str | None = None,
    ) -> None:
        super().__init__(message)
        self.sample = sample
        self.step = step
        self.residual = residual
        self.norm = norm
        self.cause = cause

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))


class InnerLoopExhaustion(CoreError, ValueError):
    """A walk has no admissible next word. Attributes: `reason`, `region`, `step`, `rejected` (attempts)."""

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        region: str | None = None,
        step: int | None = None,
        rejected: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.region = region
        self.step = step
        self.rejected = rejected

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))


def _rebuild(kind: type[CoreError], args: tuple[Any, ...], state: dict[str, Any]) -> CoreError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class TracedCheckError(CoreError, TypeError):
    """A check that raises on the host was called while tracing, where it could only be dropped in silence."""


class MissingClosureError(CoreError, TypeError):
    """A checked function returned no `Closure`, so that there would be nothing to check."""


class PointAtInfinityError(CoreError, ValueError):
    """A point has no finite coordinates, or a motor carries the origin to infinity."""


class PromptRefusedError(CoreError, ValueError):
    """A text cannot be taken as a prompt. Attribute: `reason`, one of `engine.language.text.REFUSALS`."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))

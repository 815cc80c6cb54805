"""The root of every typed error of the project, and the errors of the packs.

Each concrete class also subclasses the standard type that callers already catch (DESIGN §9). A `CoreError` is a
mistake or refusal that a person can act on: commands print its message as one line and exit non-zero. Every class
survives a pickle round trip, since launchers send exceptions between processes.
"""


class CoreError(Exception):
    """Root of the project's errors; its text is one clear line: what, where and what to do."""


class PackFormatError(CoreError, ValueError):
    """Bytes that are not the strict JSON or the schema a pack file must have."""


class SafetyPackError(CoreError, RuntimeError):
    """The safety pack cannot be trusted: nothing starts."""


class SafetyOverrideError(SafetyPackError):
    """Something tried to choose, weaken or go around the safety pack."""


class IdentityPackError(CoreError, ValueError):
    """An identity pack is unknown, malformed, out of bounds or unsealed."""


class LanguagePackError(CoreError, ValueError):
    """A language pack is absent, unknown, malformed or unsealed."""

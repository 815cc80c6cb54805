"""What every record is stamped with, and the second look at the safety pack before each one is written."""

from dataclasses import dataclass

from engine import __version__
from packs.errors import SafetyPackError
from packs.safety.loader import load_safety_pack


@dataclass(frozen=True)
class Stamp:
    """Engine version, digest of the safety pack and whether that pack is ratified."""

    engine_version: str
    safety_sha256: str
    ratified: bool

    def recheck(self) -> None:
        """Load the safety pack again; raise `SafetyPackError` if it is not the one this stamp was taken with."""
        if load_safety_pack().sha256 != self.safety_sha256:
            raise SafetyPackError("the safety pack changed while the instrument ran: nothing more is recorded")


def take_stamp() -> Stamp:
    """Load the safety pack and return the stamp. Raises `SafetyPackError`; nothing here catches it."""
    pack = load_safety_pack()
    return Stamp(__version__, pack.sha256, pack.ratified)

"""Identity packs made in memory, for tests of what is read from them."""

from packs.identity.loader import IdentityPack, SurfacePreferences, ValueAxis


def make_pack(
    axes: dict[str, tuple[tuple[float, float, float], float]],
    *,
    pack_id: str = "made_up_v1",
    threshold: float = 0.45,
    boundaries: tuple[str, ...] = ("no_fabricated_source",),
    preferences: SurfacePreferences | None = None,
) -> IdentityPack:
    """Return a pack with the given axes, {id: (direction, weight)}."""
    return IdentityPack(
        pack_id=pack_id,
        version="1.0.0",
        description="A pack made by a test.",
        alignment_threshold=threshold,
        boundary_ids=boundaries,
        value_axes=tuple(ValueAxis(name, name, direction, weight, "") for name, (direction, weight) in axes.items()),
        surface_preferences=preferences,
        sha256="0" * 64,
        ratified=True,
    )


DEFAULT_AXES = {
    "truthfulness": ((1.0, 0.0, 0.0), 1.0),
    "coherence": ((0.0, 1.0, 0.0), 1.0),
    "reverence": ((0.0, 0.0, 1.0), 1.0),
}

"""Identity packs: value axes, weights, thresholds and surface preferences. See `packs.identity.loader`."""

"""The safety pack: the one, code-loaded set of boundaries. See `packs.safety.loader`."""

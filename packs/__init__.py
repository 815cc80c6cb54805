"""Pack data and the loaders that turn their bytes into frozen dataclasses. Standard library only."""

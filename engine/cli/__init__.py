"""The `core` command. Importing this package imports neither JAX nor Hydra."""

from engine.cli.main import main as main

"""A Cl(4,1) versor-field engine. Importing this package has no side effect and does not import JAX."""

__version__ = "0.1.0"

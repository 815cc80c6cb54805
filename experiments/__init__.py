"""Hydra applications, one question each. Imported late, by the command that needs them."""

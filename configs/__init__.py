"""Hydra's YAML tree, shipped as package data and composed as `pkg://configs`. No code and no safety node live here."""

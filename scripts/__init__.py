"""Maintainers' scripts: ratify, build, bench."""

"""Errors, precision and array types: what every other engine package stands on."""

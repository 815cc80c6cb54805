"""The pin: which bytes the safety pack has. Written by `scripts/ratify_safety_pack.py` only."""

PACK_ID = "core_safety_axes_v1"
PACK_SHA256 = "6feb5cc7840182dac0b222959183ebe6b72e44e95eb72ee31aa8968bfecff07b"

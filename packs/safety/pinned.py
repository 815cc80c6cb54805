"""The pin: which bytes the safety pack has. Written by `scripts/ratify_safety_pack.py` only."""

PACK_ID = "core_safety_axes_v1"
PACK_SHA256 = "d7f1eb6f9e1e789eabb376504fd4f706f18661abbbe853a60cb0be12994fbfe0"

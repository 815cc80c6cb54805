"""The pin: which bytes the safety pack of this installation has. Written by `scripts/ratify_safety_pack.py` only."""

PACK_ID = "core_safety_axes_v1"
PACK_SHA256 = "5aaa6adef91042c73574f2b3c66907e2f52101453597ba97565836daa1d1b6df"

"""Write the SHA-256 of the shipped safety and identity packs into docs/packs.md; run it after ratifying."""

import re
import sys

from engine.base.origin import engine_root
from packs.identity.loader import IdentityPack, available_packs, load_identity_manifold
from packs.safety.loader import SafetyPack, load_safety_pack


def main() -> int:
    """Rewrite the rows of the table and say whether the page changed."""
    page = engine_root() / "docs" / "packs.md"
    text = before = page.read_text(encoding="utf-8")
    packs: list[SafetyPack | IdentityPack] = [load_safety_pack(), *map(load_identity_manifold, available_packs())]
    for pack in packs:
        row = f"| `{pack.pack_id}` | {pack.version} | `{pack.sha256}` |"
        text = re.sub(rf"^\| `{pack.pack_id}` \| [0-9.]+ \| `[^`]*` \|$", row, text, flags=re.MULTILINE)
    if text != before:
        page.write_text(text, encoding="utf-8")
    print(f"{page.name}: {'digests written' if text != before else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

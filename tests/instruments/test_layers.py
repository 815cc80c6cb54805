"""The text side knows nothing of the field: a whole run, a reading and a replay load neither it nor JAX."""

import os
import subprocess
import sys

from tests.instruments.support import write_live, write_patterns

PROGRAM = """
import sys
from pathlib import Path
from engine.instruments import amend_constitution, synthesize_shadow_constitution
from engine.instruments import calibration, compare, figure, noise, replay, report, staging
from tests.instruments.support import PlainGenerator
root = Path(sys.argv[1])
common = {"embedder": "hashing", "generator": PlainGenerator()}
assert synthesize_shadow_constitution(root / "live", root / "p.json", log_path=root / "log", **common).ok
assert amend_constitution(root / "live", root / "p.json", **common).ok
assert replay.verify_log(root / "log").ok
loaded = sorted(name for name in sys.modules if name in ("jax", "scipy", "matplotlib") or name.startswith("engine."))
print(*loaded)
"""


def test_the_text_side_loads_neither_the_field_nor_jax(tmp_path):
    write_live(tmp_path / "live")
    write_patterns(tmp_path / "p.json")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    loaded = finished.stdout.split()
    allowed = ("engine.base", "engine.instruments")
    assert [name for name in loaded if not name.startswith(allowed)] == []
    assert "engine.instruments.shadow" in loaded

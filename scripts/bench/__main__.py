"""Run the benchmarks one after the other (`make bench`). Each is a module here and can be run alone."""

import subprocess
import sys
import time
from pathlib import Path

ORDER = ("startup", "products", "propagate", "sweep", "embedding")
"""The quick ones; geometry, answers, residual_table and published_readings publish figures of their own in the docs."""


def main() -> int:
    """Run every benchmark of `ORDER` and return 1 if one failed."""
    failed = []
    for name in ORDER:
        print(f"\n## {name}\n", flush=True)
        start = time.perf_counter()
        if subprocess.run([sys.executable, "-m", f"scripts.bench.{name}"], check=False).returncode:
            failed.append(name)
        print(f"\n({time.perf_counter() - start:.0f} s)", flush=True)
    for name in failed:
        print(f"bench: {name} failed", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    assert all((Path(__file__).parent / f"{name}.py").is_file() for name in ORDER)
    sys.exit(main())

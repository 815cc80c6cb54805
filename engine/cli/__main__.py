"""`python -m engine.cli` is the `core` command."""

import sys

from engine.cli import main

if __name__ == "__main__":
    sys.exit(main())

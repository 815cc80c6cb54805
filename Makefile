# Two commands do everything on a fresh machine: `make sweep` (the main job) and `make test` (all checks).
VENV ?= .venv
BIN := $(VENV)/bin
export PYTHON ?= python3

.PHONY: setup sweep test lint types imports unit docs attacks bench lock clean

setup:
	@scripts/setup_env.sh $(VENV)

sweep: setup
	$(BIN)/core sweep $(ARGS)

test: lint types imports docs unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

docs: setup
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

unit: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

attacks: setup
	$(BIN)/python -m tests.attacks.report

bench: setup
	$(BIN)/python -m scripts.bench

lock:
	uv pip compile pyproject.toml --extra dev --python-version 3.11 --generate-hashes --quiet -o requirements.lock

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.PHONY: faults
faults: setup
	$(BIN)/python -m scripts.faults

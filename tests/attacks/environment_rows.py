"""Attack table of the process around the loader: variables, hatches, working directory, import path, `python -O`.

Each row runs a real interpreter, over a copy of the source tree where files are edited.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from packs import seal
from packs.errors import SafetyOverrideError, SafetyPackError
from packs.safety import pinned
from tests.attacks.rows import Row
from tests.attacks.workspace import PACKS, SAFETY, edited, layout

ROOT = PACKS.parent
LOAD = "from packs.safety.loader import load_safety_pack as load; pack = load(); print(pack.sha256, pack.ratified)"
_TREE = ("engine", "packs", "configs", "experiments")


def rows() -> Iterator[Row]:
    """Yield every row of the table."""
    yield from _variables()
    yield from _hatches()
    yield from _import_paths()
    yield from _pin_rows()


def _variables() -> Iterator[Row]:
    for name in (
        "CORE_SAFETY_PACK",
        "CORE_SAFETY_PACK_PATH",
        "CORE_SAFETY_PACKS",
        "CORE_SAFETY_PACK_ID",
        "CORE_SAFETY_PACK_SHA256",
        "core_safety_pack",
        "Core_Safety_Pack_Dir",
    ):
        for value in ("", "/tmp/other", "1"):
            yield _refused(f"{name}={value}", SafetyOverrideError, {name: value})
    for name, value in (
        ("CORE_PACKS_PATH", "/nowhere"),
        ("PACKS_PATH", "/nowhere"),
        ("SAFETY_PACK", "other"),
        ("CORE_IDENTITY", "other"),
        ("HOME", "/nowhere"),
        ("XDG_CONFIG_HOME", "/nowhere"),
        ("PYTHONOPTIMIZE", "2"),
        ("PYTHONHASHSEED", "7"),
        ("LC_ALL", "C"),
        ("PYTHONUTF8", "0"),
        ("CORE_ALLOW_UNRATIFIED_IDENTITY", "1"),
    ):
        yield _unchanged(f"{name}={value}", {name: value})


def _hatches() -> Iterator[Row]:
    def reworded(tree: Path) -> None:
        _rewrite(tree, lambda pack: pack.update(description="Other words."))

    def gutted(tree: Path) -> None:
        _rewrite(tree, lambda pack: (pack["boundary_ids"].pop(), pack["boundary_descriptions"].popitem()))

    hatch = "CORE_ALLOW_UNRATIFIED_SAFETY"
    for value in ("", "0", "true", "True", "yes", "01", "1 ", " 1", "2", "\uff11"):
        yield _edited(f"{hatch}={value!a} on an edited pack", reworded, {hatch: value}, SafetyPackError)
    yield _edited("no hatch on an edited pack", reworded, {}, SafetyPackError)
    yield _edited(f"{hatch}=1 outside a checkout", reworded, {hatch: "1"}, SafetyPackError, checkout=False)
    yield _edited(f"{hatch}=1 on a pack without one of the five", gutted, {hatch: "1"}, SafetyPackError)
    yield _edited(f"{hatch}=1 on a missing pack", lambda tree: _pack(tree).unlink(), {hatch: "1"}, SafetyPackError)
    yield _edited(
        f"{hatch}=1 on a broken pack", lambda tree: _pack(tree).write_bytes(b"{"), {hatch: "1"}, SafetyPackError
    )
    yield _edited(
        "the hatch of identity on an edited pack", reworded, {"CORE_ALLOW_UNRATIFIED_IDENTITY": "1"}, SafetyPackError
    )
    yield _edited(f"{hatch}=1 in a checkout says unratified and warns", reworded, {hatch: "1"}, None)


def _import_paths() -> Iterator[Row]:
    def shadow(tree: Path) -> Path:
        own = tree / "cwd"
        (own / "packs" / "safety").mkdir(parents=True)
        (own / "packs" / "__init__.py").write_text("")
        (own / "packs" / "safety" / "__init__.py").write_text("")
        SAFETY.write(own / "packs" / "safety")
        return own

    def run_in_shadow(folder: Path, name: str, *options: str) -> None:
        own = shadow(folder)
        result = _run([*options, "-m", "engine.cli", "packs", "list"], {"PYTHONPATH": f"{own}{os.pathsep}{ROOT}"}, own)
        assert result.returncode == 1, (name, result)
        assert result.stderr.count("\n") == 1, result.stderr
        raise SafetyOverrideError(result.stderr.strip())

    yield Row("import path", "packs of the working directory", SafetyOverrideError, lambda f: run_in_shadow(f, "-m"))
    yield Row("import path", "the same with -O", SafetyOverrideError, lambda f: run_in_shadow(f, "-O", "-O"))

    def run_beside(folder: Path) -> None:
        own = shadow(folder)
        assert _digest(_run(["-P", "-c", LOAD], {"PYTHONPATH": str(ROOT)}, own)) == pinned.PACK_SHA256

    yield Row("import path", "a packs folder in the working directory, with -P", None, run_beside)
    yield Row("import path", "python -O", None, lambda f: _expect_same(_run(["-O", "-c", LOAD], {}, ROOT)))
    yield Row("import path", "python -OO", None, lambda f: _expect_same(_run(["-OO", "-c", LOAD], {}, ROOT)))
    yield Row(
        "import path",
        "another working directory",
        None,
        lambda f: _expect_same(_run(["-c", LOAD], {"PYTHONPATH": str(ROOT)}, Path("/"))),
    )


def _pin_rows() -> Iterator[Row]:
    text = (PACKS / "safety" / "pinned.py").read_text()

    def other_digit(tree: Path) -> None:
        digest = pinned.PACK_SHA256
        last = "0" if digest[-1] != "0" else "1"
        (tree / "packs/safety/pinned.py").write_text(text.replace(digest, digest[:-1] + last))

    for name, edit in (
        ("last digit of the pin", other_digit),
        ("pin blank", lambda tree: _repin(tree, text, "")),
        ("pin in capitals", lambda tree: _repin(tree, text, pinned.PACK_SHA256.upper())),
        ("pin of the report", lambda tree: _repin(tree, text, seal.sha256_hex(SAFETY.report))),
        ("pin of another id", lambda tree: (tree / "packs/safety/pinned.py").write_text(text.replace("_v1", "_v2"))),
        ("pack deleted", lambda tree: _pack(tree).unlink()),
        ("report deleted", lambda tree: _pack(tree).with_name(SAFETY.report_name).unlink()),
        ("a second pack", lambda tree: _pack(tree).with_name("other_v1.json").write_bytes(SAFETY.pack)),
    ):
        yield _edited(name, edit, {}, SafetyPackError)


def _refused(name: str, expected: type[Exception], variables: Mapping[str, str]) -> Row:
    def act(folder: Path) -> None:
        _raise_refusal(_run(["-m", "engine.cli", "packs", "list"], variables, ROOT), expected)

    return Row("environment", name, expected, act)


def _unchanged(name: str, variables: Mapping[str, str]) -> Row:
    return Row("environment", name, None, lambda f: _expect_same(_run(["-c", LOAD], variables, ROOT)))


def _edited(
    name: str,
    edit: Callable[[Path], object],
    variables: Mapping[str, str],
    expected: type[Exception] | None,
    *,
    checkout: bool = True,
) -> Row:
    def act(folder: Path) -> None:
        tree = copy_tree(folder, checkout=checkout)
        edit(tree)
        result = _run(["-m", "engine.cli", "packs", "list"], variables, tree)
        if expected is not None:
            _raise_refusal(result, expected)
        assert result.returncode == 0, result
        assert "NOT RATIFIED" in result.stdout
        assert "WARNING" in result.stderr

    return Row("installed files", name, expected, act)


def copy_tree(folder: Path, *, checkout: bool) -> Path:
    """Return a copy of the source tree in `folder`; as a checkout it has the project file and a `.git` folder."""
    tree = folder / "tree"
    shutil.copytree(_template(), tree, copy_function=os.link)
    # Hard links are cheap; what a row edits must be its own file.
    shutil.rmtree(tree / "packs" / "safety")
    shutil.copytree(PACKS / "safety", tree / "packs" / "safety", ignore=shutil.ignore_patterns("__pycache__"))
    if checkout:
        (tree / ".git").mkdir()
        shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


@functools.cache
def _template() -> Path:
    template = Path(tempfile.mkdtemp(prefix="corefield-tree-"))
    for name in _TREE:
        shutil.copytree(ROOT / name, template / name, ignore=shutil.ignore_patterns("__pycache__"))
    return template


def _run(arguments: list[str], variables: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CORE_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, *arguments],
        env={**kept, "PYTHONDONTWRITEBYTECODE": "1", **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )


def _raise_refusal(result: subprocess.CompletedProcess[str], expected: type[Exception]) -> None:
    assert result.returncode == 1, result
    assert result.stdout == "", result.stdout
    lines = [line for line in result.stderr.splitlines() if not line.startswith("WARNING")]
    assert len(lines) == 1, result.stderr
    assert expected.__name__ in lines[0], lines
    raise expected(lines[0])


def _digest(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 0, result
    return result.stdout.split()[0]


def _expect_same(result: subprocess.CompletedProcess[str]) -> None:
    assert result.stdout.split() == [pinned.PACK_SHA256, "True"], result


def _pack(tree: Path) -> Path:
    return tree / "packs" / "safety" / SAFETY.pack_name


def _rewrite(tree: Path, edit: Callable[[dict[str, object]], object]) -> None:
    _pack(tree).write_bytes(layout(edited(SAFETY.pack, edit)))


def _repin(tree: Path, text: str, digest: str) -> None:
    (tree / "packs/safety/pinned.py").write_text(text.replace(pinned.PACK_SHA256, digest))

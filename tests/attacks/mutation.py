"""Mutation testing of the loaders: `python -m tests.attacks.mutation [MODULE ...] [--json]`.

Each mutant is one small change in the source of one module: a comparison turned, a condition negated, `and` exchanged
with `or`, a number moved by one, a statement that raises or calls dropped. It runs in a process of its own, in which
the module is loaded from the mutated source, against the attack tables of the files and then against the unit tests of
`tests/packs`. A mutant that no row and no test notices has survived and is listed with its line.
"""

import argparse
import ast
import concurrent.futures
import importlib.abc
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

from packs.safety.loader import INSTALLED_FOLDER
from tests.attacks.rows import Row, try_row

ROOT = INSTALLED_FOLDER.parent.parent
MODULES = (
    "packs.header",
    "packs.safety.loader",
    "packs.seal",
    "packs.strict_json",
    "packs.files",
    "packs.safety.schema",
    "packs.identity.loader",
    "packs.identity.schema",
    "packs.ids",
    "packs.text",
)
TESTS = ("tests/packs", "tests/attacks/test_files_race.py")
LONGEST_SECONDS = 240

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True)
class Mutant:
    """One change: `number` counts the changes of a module in source order."""

    module: str
    number: int
    line: int
    change: str


class Mutator(ast.NodeTransformer):
    """Apply the change with one number, and write down every change that there could be."""

    def __init__(self, chosen: int | None) -> None:
        self._chosen, self._next = chosen, 0
        self.found: list[tuple[int, str]] = []

    def _is_turn(self, node: ast.AST, change: str) -> bool:
        self.found.append((getattr(node, "lineno", 0), change))
        self._next += 1
        return self._next - 1 == self._chosen

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for i, operator in enumerate(node.ops):
            other = _COMPARISONS[type(operator)]
            if self._is_turn(node, f"{type(operator).__name__} -> {other.__name__}"):
                node.ops[i] = other()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        if self._is_turn(node, f"{type(node.op).__name__} -> {other.__name__}"):
            node.op = other()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and self._is_turn(node, "not dropped"):
            return node.operand
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool):
            if self._is_turn(node, f"{node.value} -> {not node.value}"):
                return ast.copy_location(ast.Constant(not node.value), node)
        elif isinstance(node.value, int | float) and self._is_turn(node, f"{node.value} -> {node.value + 1}"):
            return ast.copy_location(ast.Constant(node.value + 1), node)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Pass(), node) if self._is_turn(node, "raise dropped") else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Call) and self._is_turn(node, "call dropped"):
            return ast.copy_location(ast.Pass(), node)
        return node


def mutants(module: str) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    mutator = Mutator(None)
    mutator.visit(ast.parse(_source(module)))
    for number, (line, change) in enumerate(mutator.found):
        yield Mutant(module, number, line, change)


def survives(mutant: Mutant, stages: Sequence[str]) -> bool:
    """Return whether no stage notices the mutant: neither a row of the tables nor a unit test."""
    for stage in stages:
        command = [sys.executable, "-m", "tests.attacks.mutation", "--run", mutant.module, str(mutant.number), stage]
        try:
            result = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        if result.returncode != 0:
            return False
    return True


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Load one module from its mutated source."""

    def __init__(self, module: str, number: int) -> None:
        self._module, self._number = module, number

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(name, _path(name), loader=self)

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        tree = ast.fix_missing_locations(Mutator(self._number).visit(ast.parse(_source(self._module))))
        exec(compile(tree, str(_path(self._module)), "exec"), module.__dict__)


def run_mutant(module: str, number: int, stage: str) -> int:
    """Load the mutant in this process and run one stage; the exit code tells whether something noticed it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "packs"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(module, number))
    if stage != "tests":
        return _run_rows(sweeps=stage == "rows")
    import pytest

    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--noconftest", *TESTS]))


def _run_rows(*, sweeps: bool) -> int:
    from tests.attacks import identity_rows, safety_rows
    from tests.attacks.workspace import PACKS

    assert PACKS == ROOT / "packs"
    with tempfile.TemporaryDirectory() as name:
        rows = [*safety_rows.rows(), *identity_rows.rows()]
        # The sweeps over every byte take longest and come last.
        ordered = sorted((row for row in rows if sweeps or not _is_sweep(row)), key=_is_sweep)
        for number, row in enumerate(ordered):
            folder = Path(name) / str(number)
            folder.mkdir()
            outcome = try_row(row, folder)
            if outcome.verdict != "as expected":
                sys.stderr.write(f"{outcome.row}: {outcome.verdict} {outcome.detail}\n")
                return 1
    return 0


def _is_sweep(row: Row) -> bool:
    return "every byte" in row.name


def _path(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"


def _source(module: str) -> str:
    return _path(module).read_text(encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every mutant of the modules; name survivors on stderr as they are found, and print the totals."""
    parser = argparse.ArgumentParser(prog="tests.attacks.mutation", description=__doc__, allow_abbrev=False)
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--run", nargs=3, metavar=("MODULE", "NUMBER", "STAGE"), help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="only the tables, without the sweeps over every byte")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    if options.run:
        return run_mutant(options.run[0], int(options.run[1]), options.run[2])
    every = [mutant for module in options.modules for mutant in mutants(module)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        alive = []
        stages = ("quick",) if options.quick else ("rows", "tests")
        for mutant, survived in zip(every, pool.map(lambda m: survives(m, stages), every), strict=True):
            if survived:
                alive.append(mutant)
                sys.stderr.write(f"survived: {mutant.module}:{mutant.line} {mutant.change}\n")
    if options.json:
        sys.stdout.write(json.dumps({"mutants": len(every), "survivors": [asdict(m) for m in alive]}, indent=2) + "\n")
    else:
        sys.stdout.write(f"mutants / killed / survived = {len(every)} / {len(every) - len(alive)} / {len(alive)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

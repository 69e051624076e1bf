"""The shape of the code: imports run one way, modules are small, heavy packages stay out, model code only computes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..each import each

ROOT = Path(__file__).parents[2] / "archsim"
MODULES = sorted(ROOT.rglob("*.py"))

# Each row may import itself and the rows above it.
ORDER = (
    ("base",),
    ("trace", "device", "stack", "calibration"),
    ("lower", "detect", "node"),
    ("cost", "evidence"),
    ("cache", "cycle", "schedule"),
    ("estimation",),
    ("generation",),
    ("explain", "validation", "measure"),
    ("study", "simulate"),
    ("render",),
    ("answers",),
    ("api",),
    ("ui", "site"),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, row in enumerate(ORDER) for name in row}
HEAVY = {"plotly", "scipy", "pandas", "networkx", "simpy", "numba", "torch", "onnx", "onnxruntime", "pynvml",
         "distributed", "dask", "pyarrow", "sphinx"}
LONGEST = 400
MODEL = ("lower", "cost", "cache", "cycle", "schedule")
# The calibration file, the trace of a program, and whether numba is there: read here, and nowhere else in the model.
READS_A_FILE = {"calibration/constants.py", "cache/trace_file.py"}
FORBIDDEN_CALLS = {"print", "open", "input", "exit", "quit", "breakpoint"}
FORBIDDEN_METHODS = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "unlink", "mkdir"}
FORBIDDEN_IMPORTS = {"sys", "os", "io", "pathlib", "click", "argparse", "logging", "subprocess", "warnings", "archsim.base.files"}


text = cache(Path.read_text)
tree_of = cache(ast.parse)


@cache
def imports_of(source: str) -> tuple[tuple[int, str], ...]:
    """(line, dotted name) of every import of a module."""
    return tuple(imports(tree_of(source)))


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, at the top of the module or inside a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            # `from archsim import errors` names a module, `from archsim.base.errors import EXIT` what is in it
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "archsim" else [base]
            yield from ((node.lineno, name) for name in names)


def part(dotted: str) -> str:
    """The layer that a module of the package belongs to; empty for what is outside and for the package itself."""
    words = dotted.split(".")
    return words[1] if words[0] == "archsim" and len(words) > 1 and words[1] in RANK else ""


def upward(source: str, layer: str) -> list[str]:
    """Imports in a module of `layer` that run against the order."""
    return [
        f"line {line}: {layer} imports {name}"
        for line, name in imports_of(source)
        if part(name) and RANK[part(name)] > RANK[layer]
    ]


def unknown(source: str) -> list[str]:
    """Imports of parts of the package that have no place in the order."""
    return [
        f"line {line}: {name} has no place in ORDER"
        for line, name in imports_of(source)
        if name.startswith("archsim.") and not part(name) and name.split(".")[1] not in ("Estimate", "estimate", "__version__")
    ]


def at_import_time(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported: not those in functions, not those for type checkers only."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
            continue
        yield node
        pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def heavy(source: str) -> list[str]:
    """Imports of heavy packages that run when the module is imported."""
    found = []
    for node in at_import_time(tree_of(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [f"line {line}: {name}" for line, name in imports(ast.Module([node], [])) if name.split(".")[0] in HEAVY]
    return found


def deeds(source: str) -> list[str]:
    """What model code must not do: print, touch files, read arguments, leave."""
    found = [f"line {line}: imports {name}" for line, name in imports_of(source) if name in FORBIDDEN_IMPORTS]
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name in FORBIDDEN_CALLS or method in FORBIDDEN_METHODS:
                found.append(f"line {node.lineno}: calls {name or method}")
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """A circle of modules that import each other, at the top or inside a function, if there is one."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for target in sorted(graph.get(name, ())):
            found = walk(target, [*path, name])
            if found:
                return found
        done.add(name)
        return []

    for name in sorted(graph):
        found = walk(name, [])
        if found:
            return found
    return []


def dotted(path: Path) -> str:
    words = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


def lines(path: Path) -> int:
    return len(text(path, "utf-8").splitlines())


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


@each("path", MODULES)
def test_imports_run_one_way(path: Path) -> None:
    if path == ROOT / "__init__.py":  # the package offers the API, on first use
        return
    source = text(path, "utf-8")
    assert layer_of(path) in RANK, f"{layer_of(path)} has no place in ORDER"
    assert upward(source, layer_of(path)) == []
    assert unknown(source) == []


@each("path", MODULES)
def test_no_module_is_long(path: Path) -> None:
    assert lines(path) <= LONGEST


@each("path", MODULES)
def test_heavy_packages_are_imported_where_they_are_needed(path: Path) -> None:
    assert heavy(text(path, "utf-8")) == []


@each("path", [path for path in MODULES if layer_of(path) in MODEL])
def test_model_code_only_computes(path: Path) -> None:
    if str(path.relative_to(ROOT)) not in READS_A_FILE:
        assert deeds(text(path, "utf-8")) == []


def test_every_layer_of_the_order_is_there() -> None:
    assert sorted(RANK) == sorted({layer_of(path) for path in MODULES if path != ROOT / "__init__.py"})


def test_no_circle_of_imports() -> None:
    names = {dotted(path) for path in MODULES}
    graph = {}
    for path in MODULES:
        targets: set[str] = set()
        for node in ast.walk(tree_of(text(path, "utf-8"))):
            if isinstance(node, ast.Import):
                targets.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                inside = {f"{node.module}.{alias.name}" for alias in node.names} & names
                targets.update(inside or {node.module})
        graph[dotted(path)] = targets & names - {dotted(path)}
    assert circle(graph) == []


# ---------------------------------------------------------------------------------------------- the checks can fail


def test_an_upward_import_is_noticed() -> None:
    assert upward("from archsim.cli.main import main", "cost") == ["line 1: cost imports archsim.cli.main"]
    inside = "def f():\n    import archsim.estimation.result"
    assert upward(inside, "schedule") == ["line 2: schedule imports archsim.estimation.result"]
    assert upward("from archsim import api", "study") == ["line 1: study imports archsim.api"]
    assert upward("from archsim.base.errors import InputError\nimport numpy\nimport archsim", "cost") == []


def test_a_new_part_without_a_place_is_noticed() -> None:
    assert unknown("from archsim.utils import helper") == ["line 1: archsim.utils has no place in ORDER"]


def test_a_heavy_import_is_noticed() -> None:
    assert heavy("import networkx.algorithms as al") == ["line 1: networkx.algorithms"]
    assert heavy("try:\n    from scipy import optimize\nexcept ImportError:\n    pass") == ["line 2: scipy"]
    assert heavy("class A:\n    import simpy") == ["line 2: simpy"]
    assert heavy("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import networkx\ndef f():\n    import pandas") == []


def test_a_deed_is_noticed() -> None:
    assert deeds("print(1)") == ["line 1: calls print"]
    assert deeds("import pathlib\npathlib.Path('x').read_text()") == ["line 1: imports pathlib", "line 2: calls read_text"]
    assert deeds("with open('x') as f:\n    pass") == ["line 1: calls open"]
    assert deeds("from archsim.base.files import data_folder") == ["line 1: imports archsim.base.files"]
    assert deeds("import numpy as np\nx = np.exp(1)") == []


def test_a_circle_is_noticed() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_a_long_module_would_be_noticed(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_text("x = 1\n" * (LONGEST + 1))
    assert lines(path) > LONGEST

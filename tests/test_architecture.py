"""The house keeps its shape: what docs/architecture.md says is checked here on the source."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import odefit

PACKAGE = Path(odefit.__file__).parent

LAYERS = (
    "problem",
    "simulation",
    "structure",
    "discretisation",
    "enclosure",
    "methods",
    "assessment",
    "result_data",
    "result_file",
    "reporting",
    "result",
    "fit",
    "library",
    "cli",
)
"""A module imports from its own layer and from those before it; odefit itself comes last."""

LAZY: dict[tuple[str, str], str] = {}
"""Imports inside functions, or for types alone, that may go the other way, and why."""

HEAVY = ("casadi", "heyoka", "matplotlib", "pandas", "scipy")
"""What ``import odefit`` leaves alone until it is needed."""

PRINTERS = ("odefit.cli", "odefit.__main__", "odefit.reporting.terminal", "studies.terminal")
"""The modules that may print."""

MOST_LINES = 500


@dataclass(frozen=True)
class Import:
    """One import of a part of odefit by another."""

    importer: str
    imported: str
    lazy: bool  # inside a function, or for types alone
    for_types: bool  # under TYPE_CHECKING
    line: int


@cache
def sources() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(sources()[module].read_text(encoding="utf-8"))


def statements(
    node: ast.AST, lazy: bool = False, types: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    """Every import below `node`: is it inside a function, is it for types alone?"""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, lazy, types
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from statements(child, lazy, types=True)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from statements(child, lazy or inside, types)


@cache
def imports() -> tuple[Import, ...]:
    """All imports of odefit's modules by odefit's modules."""
    found = []
    for module in sources():
        for node, lazy, types in statements(tree(module)):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                base = node.module or ""
                full = [f"{base}.{alias.name}" for alias in node.names]
                names = [name if name in sources() else base for name in full]
            found += [
                Import(module, name, lazy or types, types, node.lineno)
                for name in dict.fromkeys(names)
                if name.split(".")[0] == "odefit"
            ]
    return tuple(found)


def layer(module: str) -> str:
    """``"problem"`` for ``"odefit.problem.model"``, ``"odefit"`` for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and not parts[1].startswith("_") else "odefit"


def height(module: str) -> int:
    return [*LAYERS, "odefit"].index(layer(module))


def test_every_module_belongs_to_a_layer() -> None:
    strangers = {layer(module) for module in sources()} - {*LAYERS, "odefit"}
    assert not strangers, f"no layer of docs/architecture.md: {sorted(strangers)}"


def test_no_import_runs_against_the_layers() -> None:
    wrong = [
        f"{i.importer}:{i.line} imports {i.imported}"
        for i in imports()
        if height(i.imported) > height(i.importer)
        and not (i.lazy and (layer(i.importer), layer(i.imported)) in LAZY)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_exception_to_the_layers_is_used() -> None:
    used = {(layer(i.importer), layer(i.imported)) for i in imports() if i.lazy}
    against = {pair for pair in LAZY if LAYERS.index(pair[0]) < LAYERS.index(pair[1])}
    assert against <= used, f"no longer needed: {sorted(against - used)}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {module: set() for module in sources()}
    for i in imports():
        allowed = i.lazy and (layer(i.importer), layer(i.imported)) in LAZY
        if not i.for_types and not allowed and i.imported in graph:
            graph[i.importer].add(i.imported)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for imported in sorted(graph[module]):
                visit(imported, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_the_layers_are_those_of_the_documentation() -> None:
    page = Path(__file__).parents[1] / "docs" / "architecture.md"
    first_table = page.read_text(encoding="utf-8").split("\n|", 1)[1].split("\n\n", 1)[0]
    rows = [
        line.split("|")[1].strip().strip("`").removesuffix(".py").removesuffix("/")
        for line in first_table.splitlines()
        if line.startswith("| `")
    ]
    assert tuple(rows) == LAYERS


def test_importing_odefit_is_light() -> None:
    code = f"import odefit, sys; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_no_module_is_long() -> None:
    lines = {m: len(p.read_text(encoding="utf-8").splitlines()) for m, p in sources().items()}
    long = {module: count for module, count in lines.items() if count > MOST_LINES}
    assert not long, f"more than {MOST_LINES} lines: {long}"


def test_only_the_terminal_prints() -> None:
    printing = [
        f"{module}:{node.lineno}"
        for module in sources()
        if not module.startswith(PRINTERS)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "sys.stdout.write"}
    ]
    assert not printing, "\n".join(printing)


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_the_package_brings_its_problems() -> None:
    assert (PACKAGE / "library" / "problems" / "alpha-pinene" / "alpha_pinene.csv").is_file()


def public_modules() -> list[str]:
    """Modules that say in ``__all__`` what they offer."""
    return [
        module
        for module in sources()
        if any(
            isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"
            for n in tree(module).body
        )
    ]


def undocumented(name: str, thing: object) -> Iterator[str]:
    """`name` if `thing` has no docstring, and what is public in it and has none."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return  # a constant, a type alias: documented beside it in the source
    if not inspect.getdoc(thing):
        yield name
    if not inspect.isclass(thing) or not thing.__module__.startswith("odefit"):
        return
    if (thing.__doc__ or "").startswith(f"{thing.__name__}("):
        yield f"{name} (only what dataclass makes up)"
    for member, value in vars(thing).items():
        documented = inspect.isroutine(value) or isinstance(value, property | classmethod)
        if documented and not member.startswith("_") and not inspect.getdoc(getattr(thing, member)):
            yield f"{name}.{member}"


def test_everything_public_is_documented() -> None:
    missing = []
    for module in public_modules():
        imported: ModuleType = importlib.import_module(module)
        missing += [] if imported.__doc__ else [module]
        for name in imported.__all__:
            missing += undocumented(f"{module}.{name}", getattr(imported, name))
    assert not missing, "without a docstring:\n" + "\n".join(missing)


def test_every_module_can_be_imported() -> None:
    for info in pkgutil.walk_packages([str(PACKAGE)], "odefit."):
        if not info.name.endswith("__main__"):
            importlib.import_module(info.name)
    # The module odefit.fit must not take the place of the function odefit.fit.
    assert callable(odefit.fit)

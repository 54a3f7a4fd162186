"""The house keeps its shape: what docs/architecture.md says is checked here on the source."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import odefit
from docs import module_tables
from odefit.simulation.engines.registry import import_problem

PACKAGE = Path(odefit.__file__).parent

LAYERS = (
    "common",
    "expressions",
    "problem",
    "formats",
    "simulation",
    "structure",
    "discretisation",
    "enclosure",
    "certificates",
    "methods",
    "assessment",
    "result_data",
    "designs",
    "reporting",
    "result",
    "fitting",
    "library",
    "explorer",
    "cli",
)
"""A module imports from its own layer and from those before it; odefit itself comes last."""

FAMILIES = (
    "algebraic",
    "branch_and_bound",
    "integral_matching",
    "multiple_shooting",
    "outer_approximation",
    "transcription",
)
"""Packages of methods/ that do not import each other; what two of them share lies beside them."""

HEAVY = ("casadi", "heyoka", "llvmlite", "numba", "matplotlib", "pandas", "scipy")
"""What ``import odefit`` leaves alone until it is needed."""

PRINTERS = (
    "odefit.cli",
    "odefit.__main__",
    "odefit.reporting.terminal",
    "evidence.running.terminal",
)
"""The modules that may print."""

MOST_LINES = 420

MOST_MODULES = 20


@dataclass(frozen=True)
class Import:
    """One import of a part of odefit by another, wherever it stands.

    Imports inside functions and for types alone count like all others, and so do modules that
    are named in a text, to be imported later.
    """

    importer: str
    imported: str
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


@pytest.fixture(autouse=True, scope="module")
def trees_are_no_garbage() -> Iterator[None]:
    """Their million objects would be looked through again and again while they are read."""
    gc.disable()
    yield
    tree.cache_clear()
    gc.enable()


def named(module: str) -> Iterator[tuple[str, int]]:
    """Every module of odefit that `module` names, in an import or in a text."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield (full if full in sources() else base), node.lineno
        elif isinstance(node, ast.Constant) and str(node.value).startswith("odefit."):
            yield str(node.value).partition(":")[0], node.lineno


@cache
def imports() -> tuple[Import, ...]:
    """All imports of odefit's modules by odefit's modules."""
    return tuple(
        Import(module, name, line)
        for module in sources()
        for name, line in sorted(set(named(module)))
        if name in sources() and name != module
    )


def layer(module: str) -> str:
    """``"problem"`` for ``"odefit.problem.model"``, ``"odefit"`` for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and not parts[1].startswith("_") else "odefit"


def height(module: str) -> int:
    """The place of the layer of `module` in the order of layers."""
    return [*LAYERS, "odefit"].index(layer(module))


def test_every_module_belongs_to_a_layer() -> None:
    strangers = {layer(module) for module in sources()} - {*LAYERS, "odefit"}
    assert not strangers, f"no layer of docs/architecture.md: {sorted(strangers)}"


def test_no_import_runs_against_the_layers() -> None:
    wrong = [
        f"{i.importer}:{i.line} imports {i.imported}"
        for i in imports()
        if height(i.imported) > height(i.importer)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {module: set() for module in sources()}
    for i in imports():
        graph[i.importer].add(i.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


def test_no_family_of_methods_imports_another() -> None:
    def family(module: str) -> str:
        return module.removeprefix("odefit.methods.").partition(".")[0]

    pairs = {i: (family(i.importer), family(i.imported)) for i in imports()}
    between = {i: (a, b) for i, (a, b) in pairs.items() if a in FAMILIES and b in FAMILIES}
    wrong = [
        f"{i.importer}:{i.line} imports {i.imported}" for i, (a, b) in between.items() if a != b
    ]
    assert not wrong, "\n".join(wrong)


def test_imports_of_every_kind_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
import odefit.problem.model
if TYPE_CHECKING:
    from odefit.problem.noise import Noise
def later():
    from odefit.problem.toml import files
    return import_module("odefit.methods.transcription"), "odefit.fitting.fit:fit"
"""
    monkeypatch.setattr(f"{__name__}.tree", lambda module: ast.parse(source))
    assert {name for name, _ in named("any")} & set(sources()) == {
        "odefit.problem.model",
        "odefit.problem.noise",
        "odefit.problem.toml.files",
        "odefit.methods.transcription",
        "odefit.fitting.fit",
    }


def test_the_layers_are_those_of_the_documentation() -> None:
    page = Path(__file__).parents[1] / "docs" / "architecture.md"
    assert module_tables.layers_of(page.read_text(encoding="utf-8")) == LAYERS


def test_modules_that_the_documentation_names_exist() -> None:
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", page)) - {"tests/test_architecture.py"}
    files = [path.relative_to(PACKAGE).as_posix() for path in sources().values()]
    missing = [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)]
    assert len(named) > 20
    assert not missing, f"no modules of odefit: {sorted(missing)}"


def test_the_page_of_modules_has_every_module_with_its_purpose() -> None:
    listed = (Path(__file__).parents[1] / "docs" / "modules.md").read_text(encoding="utf-8")
    assert listed == module_tables.page(LAYERS), "run python docs/module_tables.py"
    rows = dict(re.findall(r"^\| `(\w+\.py)` \| (.+) \|$", listed, re.MULTILINE))
    names = {path.name for path in sources().values()} - {"__init__.py", "__main__.py"}
    assert rows.keys() == names
    assert all(len(purpose) > 15 for purpose in rows.values())
    headings = set(re.findall(r"^#+ `([\w/]+)/`$", listed, re.MULTILINE))
    assert headings == folders() - {"."}


def folders() -> set[str]:
    return {path.parent.relative_to(PACKAGE).as_posix() for path in sources().values()}


def test_no_folder_is_crowded_and_the_package_holds_packages() -> None:
    counts = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in sources().values())
    crowded = {folder: n for folder, n in counts.items() if n > MOST_MODULES}
    assert not crowded, f"more than {MOST_MODULES} modules: {crowded}"
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_folders_import_each_other_one_way() -> None:
    """A folder and the modules beside it are places; no two places need each other."""
    graphs: dict[str, dict[str, set[str]]] = {}
    for i in imports():
        one, other = i.importer.split("."), i.imported.split(".")
        same = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
        if same and len(one) > same and len(other) > same:
            graph = graphs.setdefault(".".join(one[:same]), {})
            graph.setdefault(one[same], set()).add(other[same])
    for package, graph in graphs.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            raise AssertionError(f"{package}: {' <- '.join(error.args[1])}") from None


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_command_line_tells_its_options_without_problems_and_simulation(option: str) -> None:
    code = (
        f"import sys; sys.argv = ['odefit', {option!r}]\n"
        "from odefit.cli import main\n"
        "try: main()\n"
        "except SystemExit: print('loaded', len([n for n in sys.modules if n[:7] == 'odefit.']),"
        " *{'odefit.problem.problem', 'odefit.simulation.forward'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    word, count, *heavy = ran.stdout.splitlines()[-1].split()
    assert (word, heavy) == ("loaded", [])
    assert int(count) < 80


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


FRAGMENT = re.compile(r"(Of|As|Without|From|To|At|In|Until|Said|Asked|Not|Up) ")
"""Beginnings of docstrings that are no sentences."""


def docstrings(module: str) -> Iterator[tuple[int, str]]:
    """Every docstring of `module` with its line, those below constants and attributes too."""
    for node in ast.walk(tree(module)):
        for child in getattr(node, "body", ()) if isinstance(node, ast.Module | ast.stmt) else ():
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                yield child.lineno, str(child.value.value)


def test_docstrings_begin_like_sentences() -> None:
    found = [(m, line, text) for m in sources() for line, text in docstrings(m)]
    assert len(found) > 2500
    wrong = [f"{m}:{line}: {text[:60]}" for m, line, text in found if FRAGMENT.match(text)]
    assert not wrong, "\n".join(wrong)


def test_every_module_can_be_imported() -> None:
    for info in pkgutil.walk_packages([str(PACKAGE)], "odefit."):
        missing = ".heyoka." in info.name and import_problem("heyoka")
        if not (missing or info.name.endswith("__main__")):
            importlib.import_module(info.name)
    # No module may take the place of the function odefit.fit.
    assert callable(odefit.fit)

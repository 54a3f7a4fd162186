"""Write the page that lists every module, from their docstrings, and every engine.

python docs/module_tables.py
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from odefit.simulation.engines.registry import ENGINES

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "odefit"

HEADER = """# Modules

Every folder of `src/odefit` with its modules, each with the first sentence of its docstring. The
[architecture](architecture.md) says how they depend on each other. `python docs/module_tables.py`
writes this page.
"""


def first_sentence(path: Path) -> str:
    """Return the first paragraph of a module's docstring up to its first full stop, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".").replace("|", "\\|") + "."


def folders(layers: tuple[str, ...]) -> Iterator[Path]:
    """Yield the packages in the order of their layers, each before those inside it."""
    for layer in layers:
        inside = sorted((PACKAGE / layer).rglob("__init__.py"))
        yield from (path.parent for path in inside)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def engine_table() -> str:
    """Return the table of the engines, from their rows in the registry."""
    rows = []
    for name, row in ENGINES.items():
        able = {
            "stiff equations": row.stiff,
            "algebraic equations": row.algebraic,
            "kinks": row.kinks,
            "sensitivities": row.sensitivities,
            "the adjoint": row.adjoint,
            "batches": row.make_batch is not None,
        }
        integrates = ", ".join(word for word, is_able in able.items() if is_able)
        packages = ", ".join(row.packages) or "NumPy"
        rows.append((f"`{name}`", row.method, packages, integrates, f"{row.tolerance:g}"))
    return table(("engine", "method", "needs", "integrates", "tolerance"), rows)


def page(layers: tuple[str, ...]) -> str:
    """Return the page in Markdown."""
    parts = [HEADER]
    for folder in folders(layers):
        name = folder.relative_to(PACKAGE).as_posix()
        parts.append(f"{'#' * (name.count('/') + 2)} `{name}/`\n")
        parts.append(f"{first_sentence(folder / '__init__.py')}\n")
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        if modules:
            rows = [f"| `{path.name}` | {first_sentence(path)} |" for path in modules]
            parts.append("\n".join(["| module | its purpose |", "|---|---|", *rows]) + "\n")
        if name == "simulation/engines":
            parts.append(engine_table())
    return "\n".join(parts)


def layers_of(architecture: str) -> tuple[str, ...]:
    """Return the folders of the table of layers in the page on the architecture."""
    table = architecture.split("\n|", 1)[1].split("\n\n", 1)[0]
    cells = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| `")]
    return tuple(cell.strip("`").removesuffix("/") for cell in cells)


if __name__ == "__main__":
    architecture = (HERE / "architecture.md").read_text(encoding="utf-8")
    (HERE / "modules.md").write_text(page(layers_of(architecture)), encoding="utf-8")

"""Write the reference pages that follow from the code: commands, options, engines, messages.

``docs/conf.py`` calls :func:`write` when the documentation is built, so that they are never stale.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

from docs.module_tables import engine_table, table
from odefit.cli.command_table import COMMANDS
from odefit.cli.commands import parser
from odefit.methods.method_options import method_options, summary_of
from odefit.methods.registry import DEFAULT_METHOD, METHODS
from odefit.reporting.notices import notice_sentence
from odefit.result_data.notices import Notice, NoticeKind

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "odefit"

PAGES = ("commands.md", "options.md", "engines.md", "messages.md")
"""The pages that are written, none of which belongs to a commit."""

SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "Problem files and problems": (
        "problem/building",
        "problem/toml",
        "problem/notation",
        "problem",
    ),
    "Tables and files": ("problem/inputs",),
    "Doses and subjects": ("problem/dosing",),
    "Scenarios and parts of the data": ("problem/variants",),
    "Python functions and SymPy": ("problem/tracing",),
    "Unknown functions": ("problem/unknown_functions",),
    "SBML and Antimony": ("problem/sbml",),
    "PEtab": ("formats",),
    "Expressions": ("expressions",),
    "Command line": ("cli",),
    "Fits and methods": ("fitting", "methods", "discretisation", "enclosure", "structure"),
    "Assessment, predictions and profiles": ("assessment",),
    "Designs": ("designs",),
    "Results and reports": ("result", "result_data", "reporting", "library", "explorer"),
    "Simulation and packages": ("simulation", "common"),
}
"""The folders whose refusals each section of the page of messages lists; the longest name wins."""

RAISED = ("InputError", "ExpressionError")
"""The exceptions whose texts are refusals."""

EXAMPLES: Mapping[NoticeKind, Notice] = {
    notice.kind: notice
    for notice in (
        Notice(NoticeKind.NOT_INTEGRATED),
        Notice(NoticeKind.NOT_ASSESSED),
        Notice(
            NoticeKind.ENGINES_DISAGREE, {"time": 5.0, "first": 1.25, "second": 1.5}, ("y", "run 1")
        ),
        Notice(
            NoticeKind.OTHER_ENGINE,
            {"time": 5.0, "first": 1.25, "second": 1.5},
            ("y", "run 1", "bdf"),
        ),
        Notice(
            NoticeKind.CURVE_ASTRAY,
            {
                "low": 0.0,
                "high": 10.0,
                "passes": 3.0,
                "curve_low": 2.0,
                "curve_high": 2.0,
                "curve_passes": 0.0,
                "angle": 0.0,
            },
            ("y",),
        ),
        Notice(NoticeKind.SOLUTIONS_CUT),
        Notice(NoticeKind.TRY_ROBUST_NOISE, {}, ("y",)),
        Notice(NoticeKind.OUTLIERS, {"count": 2.0}, ("y at t = 3", "y at t = 7")),
        Notice(
            NoticeKind.SMOOTHNESS,
            {"settled": 1.0, "differences": 8.0, "sd": 0.21, "effective": 3.4},
            ("beta", "reml"),
        ),
        Notice(NoticeKind.EQUAL_SOLUTIONS, {"count": 2.0}, ("ka", "ke", "V")),
        Notice(NoticeKind.NEAR_SOLUTIONS, {"count": 2.0}, ("ka", "ke", "V")),
        Notice(
            NoticeKind.SETTLED_BY,
            {
                "time": 2.02,
                "sd": 0.5,
                "distance": 7.1,
                "assumed": 1.0,
                "solution 1": 6.8,
                "solution 2": 1.14,
            },
            ("g", "data", "h"),
        ),
        Notice(NoticeKind.SEARCHED_ELSEWHERE, {"starts": 20.0, "p": 0.001}, ("n",)),
        Notice(
            NoticeKind.STARTS_FAILED, {"failed": 3.0, "starts": 20.0}, (), "too many steps at t = 2"
        ),
        Notice(NoticeKind.STAGE_FAILED, {}, ("profiles", "ValueError")),
    )
}
"""An example of each warning that is worded in one place; the page shows its words."""


def cell(text: str) -> str:
    """Return a text as a cell of a table in Markdown."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def commands_page() -> str:
    """Return the arguments and options of every command, as in its ``--help``."""
    whole = parser()
    (choice,) = (a for a in whole._actions if isinstance(a, argparse._SubParsersAction))
    parts = [
        "# Commands and options\n",
        (
            "`odefit COMMAND --help` says the same. [The command line](command-line.md) explains "
            "output, interrupts, the log and exit statuses.\n"
        ),
        table(("command", "does"), [(f"[`{c.name}`](#{c.name})", c.help) for c in COMMANDS]),
    ]
    for command in COMMANDS:
        actions = choice.choices[command.name]
        places = [str(a.metavar or a.dest) for a in actions._get_positional_actions()]
        shown = "\n".join(line for line, _ in command.examples)
        rows = [
            (spelled(action), cell(str(action.help or "") % {"default": action.default}))
            for action in actions._get_optional_actions()
            if action.help != argparse.SUPPRESS and "--help" not in action.option_strings
        ]
        parts += [
            f"## {command.name}\n",
            f"{cell(command.description)}\n",
            f"```text\n{' '.join([f'odefit {command.name} [options]', *places])}\n```\n",
            f"Examples:\n\n```text\n{shown}\n```\n",
        ]
        parts += [table(("option", "meaning"), rows)] if rows else []
    return "\n".join(parts)


def spelled(action: argparse.Action) -> str:
    """Return the names of an option with its placeholder, as code in a cell of a table."""
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    )
    text = f"{', '.join(action.option_strings)} {value}".strip()
    more = " ..." if action.nargs in ("+", "*") else ""
    return f"`{cell(text)}{more}`"


def options_page() -> str:
    """Return the options of every method, with default and meaning, from its class."""
    parts = [
        "# Options of the methods\n",
        (
            "Set them in Python, `odefit.MultiStart(starts=20)`, or on the command line, "
            "`--method multi-start --set starts=20`. [Defaults](defaults.md) gives reasons for the "
            "most important ones.\n"
        ),
    ]
    for name, entry in METHODS.items():
        default = " (the default)" if name == DEFAULT_METHOD else ""
        parts.append(f"## {name}{default}\n")
        parts.append(f"{summary_of(name)} See [its page]({entry.page}).\n")
        rows = [
            (f"`{o.name}`", f"`{cell(o.default)}`", cell(o.takes), cell(o.meaning))
            for o in method_options(name)
        ]
        parts.append(table(("option", "default", "takes", "meaning"), rows))
    return "\n".join(parts)


def engines_page() -> str:
    """Return the table of the engines, from their rows in the registry."""
    return (
        "# Engines\n\n"
        "The integrators of trajectories. [Defaults](defaults.md#engine-and-stiffness) says how "
        'one is chosen; `odefit.SingleShooting(engine="bdf")` names one.\n\n'
        f"{engine_table()}"
    )


def messages_page() -> str:
    """Return the warnings of a fit, and every refusal with its remedy."""
    meanings = kind_meanings()
    warnings = []
    for kind in NoticeKind:
        notice = EXAMPLES.get(kind)
        words = f"{notice_sentence(notice)}." if notice else meanings[kind.name]
        warnings.append((f"`{kind.value}`", cell(words)))
    parts = [
        "# Messages\n",
        (
            "What odefit prints when it warns or refuses, and what to do then. Numbers and "
            "names are "
            "examples; `…` replaces a part that depends on the input. Exit statuses are on "
            "the page of "
            "[the command line](command-line.md#exit-status).\n"
        ),
        "## Warnings of a fit\n",
        "`kind` is the one in `result.notices`.\n",
        table(("kind", "message"), warnings),
        "## Refusals\n",
        (
            "Each names its place first, such as `[ode] x1`, and all mistakes of a file are "
            "reported "
            "at once.\n"
        ),
    ]
    collected = refusals()
    for subject in SUBJECTS:
        parts.append(f"### {subject}\n")
        rows = [split(text) for text in sorted(collected[subject], key=str.casefold)]
        parts.append(table(("message", "remedy"), [(cell(a), cell(b)) for a, b in rows]))
    return "\n".join(parts)


def kind_meanings() -> dict[str, str]:
    """Return the docstring of each kind of notice by its name."""
    tree = ast.parse((PACKAGE / "result_data" / "notices.py").read_text(encoding="utf-8"))
    body = next(n.body for n in tree.body if isinstance(n, ast.ClassDef))
    meanings = {}
    for statement, docstring in pairwise(body):
        if isinstance(statement, ast.Assign) and isinstance(docstring, ast.Expr):
            name = ast.unparse(statement.targets[0])
            meanings[name] = ast.literal_eval(docstring.value).replace("``", "`")
    return meanings


REMEDY = re.compile(
    r"[;.,:] (?=(?:write|give|use|name|rename|declare|install|remove|correct|choose|set|"
    r"add|fit|run|free|fix|take|leave|keep"
    r"|see|try|expected|it (?:has|must|needs)|did you mean|Methods are|pip install)\b)"
)
"""The beginning of the remedy in a message."""


def split(message: str) -> tuple[str, str]:
    """Return a message in two parts: the mistake, and the remedy, empty if there is none."""
    found = REMEDY.search(message)
    return (message[: found.start()], message[found.end() :]) if found else (message, "")


@cache
def refusals() -> dict[str, set[str]]:
    """Return the texts of all refusals by subject, with … for parts that depend on the input."""
    collected: dict[str, set[str]] = {subject: set() for subject in SUBJECTS}
    for path in sorted(PACKAGE.rglob("*.py")):
        folder = path.parent.relative_to(PACKAGE).as_posix()
        fits = [
            (len(name), subject)
            for subject, names in SUBJECTS.items()
            for name in names
            if folder == name or folder.startswith(f"{name}/")
        ]
        if fits:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            collected[max(fits)[1]].update(messages_in(tree))
    return collected


def messages_in(tree: ast.Module) -> Iterator[str]:
    """Yield the texts that a module gives to exceptions for mistakes and to ``Issues.error``."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in RAISED or (name == "error" and len(node.args) > 1):
            text = template(node.args[-1])
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= 4:
                yield text


def template(node: ast.expr) -> str:
    """Return the text of a string in the source, with … for inserted values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return re.sub(r"…+", "…", "".join(template(part) for part in node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left) + template(node.right)
    return "…"


def write(folder: Path = HERE) -> None:
    """Write the pages into the folder of the documentation."""
    for name, text in zip(
        PAGES, (commands_page(), options_page(), engines_page(), messages_page()), strict=True
    ):
        target = folder / name
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()

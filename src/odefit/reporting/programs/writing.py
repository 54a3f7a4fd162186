"""Stand-alone programs written to files."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from pathlib import Path

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.packages import installed_version
from odefit.common.partial_files import write_together
from odefit.problem.problem import Problem
from odefit.reporting.programs.bodies import Bodies
from odefit.reporting.programs.languages import TARGETS, Target
from odefit.reporting.programs.standalone import StandAlone, standalone


def write_program(problem: Problem, vector: Array, path: str | os.PathLike[str]) -> Path:
    """Write a program that simulates a problem, and return its path.

    Parameters
    ----------
    problem
        The problem: its equations, experiments, inputs and events.
    vector
        The unknowns, shape (n,), in the order of ``problem.keys``.
    path
        ``NAME.py`` (NumPy and SciPy), ``NAME.c`` (C99), ``NAME.jl`` (Julia) or ``NAME.m`` (MATLAB
        and Octave). A file of the same name is replaced.

    Raises
    ------
    InputError
        The suffix is not one of these, or the name is not a valid function name in the language.
        The model uses a feature that stand-alone programs lack, or the file cannot be written.
    """
    target = Path(os.fspath(path))
    language = TARGETS.get(target.suffix.lower())
    if language is None:
        raise InputError(f"{target}: expected NAME{', NAME'.join(TARGETS)}")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", target.stem):
        name = re.sub(r"\W", "_", target.stem, flags=re.ASCII).lstrip("_0123456789") or "model"
        raise InputError(
            f"{target}: {language.name} needs a file name of letters, digits and _; write "
            f"{target.with_name(name + target.suffix)}"
        )
    text = program_text(standalone(problem, vector), language, target)
    write_together({target: text})
    return target


def program_text(model: StandAlone, target: Target, path: Path) -> str:
    """Return the text of a program."""
    bodies = Bodies(model, target.language)
    values = {
        "TITLE": _title(model.title),
        "VERSION": installed_version("odefit") or "unknown",
        "FILE": path.name,
        "FUNCTION": path.stem,
        "MODULE": path.stem[0].upper() + path.stem[1:],
        "N_STATES": str(len(model.states)),
        "N_OBSERVABLES": str(len(model.observables)),
        "N_INPUTS": str(len(model.inputs)),
        "N_PARAMETERS": str(len(model.parameters)),
        "N_CONSTANTS": str(len(model.constants)),
        "N_EXPERIMENTS": str(len(model.runs)),
        "BODY_CONSTANTS": bodies.constants(),
        "BODY_INITIAL": bodies.initial(),
        "BODY_RATES": bodies.rates(),
        "BODY_OBSERVABLES": bodies.observables(),
        "BODY_TIMES": bodies.change_times(),
        "BODY_CHANGES": bodies.changes(),
        **target.tables(model),
    }
    template = files("odefit.reporting.programs") / "templates" / f"{target.template}.template"
    text = template.read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], text)


def _title(text: str) -> str:
    """Return a title that does not end a comment in any language."""
    return " ".join(re.sub(r"[^ -~]|\*/|[\"\\]", " ", text).split()) or "model"

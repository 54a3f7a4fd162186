"""Python, C, Julia and MATLAB: spelling, and the tables of a model."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from odefit.common.arrays import Array
from odefit.reporting.programs.code import Language, float_text
from odefit.reporting.programs.standalone import StandAlone

ARRAYS = "x u c p t dx y times x_new c_new experiment change".split()
"""Names of arguments and results in every template."""

PYTHON = Language(
    functions={
        "asin": "np.arcsin", "acos": "np.arccos", "atan": "np.arctan", "min": "np.minimum",
        "max": "np.maximum",
        **{f: f"np.{f}" for f in "exp log log10 sqrt sin cos tan sinh cosh tanh abs".split()},
    },
    power=lambda base, exponent, whole: (
        f"{base}**{whole}" if whole is not None and whole >= 0 else f"np.power({base}, {exponent})"
    ),
    chosen=lambda condition, value, otherwise: f"({value} if {condition} else {otherwise})",
    signs={"&&": "and", "||": "or", "!": "not "},
    reserved=frozenset([*keyword.kwlist, *ARRAYS, "np"]),
    declared="{name} = {value}",
    stored="{element} = {value}",
    element="{array}[{place}]",
    branch="if {variable} == {value}:",
    otherwise_branch="elif {variable} == {value}:",
    end="",
    remark="#",
    first_index=0,
)  # fmt: skip

C_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while pow fmin fmax fabs main y0 y1 yn j0 j1 jn gamma lgamma
    tgamma erf erfc signgam inputs rates constants initial observables changed change_times
    simulate integrate solve table compare field start sizes estimates index time clock random
    remainder hypot round floor ceil exp2 cbrt expm1 log1p log2 logb
""".split()

C = Language(
    functions={"abs": "fabs", "min": "fmin", "max": "fmax"},
    power=lambda base, exponent, whole: f"pow({base}, {exponent})",
    chosen=lambda condition, value, otherwise: f"({condition} ? {value} : {otherwise})",
    signs={},
    reserved=frozenset([*C_WORDS, *ARRAYS]),
    declared="const double {name} = {value};",
    stored="{element} = {value};",
    element="{array}[{place}]",
    branch="if ({variable} == {value}) {{",
    otherwise_branch="}} else if ({variable} == {value}) {{",
    end="}",
    remark="//",
    first_index=0,
)

JULIA_WORDS = """
    baremodule begin break catch const continue do else elseif end export false finally for
    function global if import in isa let local macro module quote return struct true try using
    while where mutable abstract primitive type pi im inputs constants initial observables
    changed simulate compare stop
""".split()

JULIA = Language(
    functions={},
    power=lambda base, exponent, whole: f"{base}^{exponent if whole is None else f'({whole})'}",
    chosen=lambda condition, value, otherwise: f"({condition} ? {value} : {otherwise})",
    signs={},
    reserved=frozenset([*JULIA_WORDS, *ARRAYS]),
    declared="{name} = {value}",
    stored="{element} = {value}",
    element="{array}[{place}]",
    branch="if {variable} == {value}",
    otherwise_branch="elseif {variable} == {value}",
    end="end",
    remark="#",
    first_index=1,
)

MATLAB_WORDS = """
    break case catch classdef continue else elseif end for function global if otherwise parfor
    persistent return spmd switch try while unwind_protect endif endfor endwhile endfunction
    until do pi i j e eps inf nan ans nargin model inputs rates constants initial observables
    changed choose tables simulate compare integrated
""".split()

MATLAB = Language(
    functions={},
    power=lambda base, exponent, whole: f"{base}^{exponent if whole is None else f'({whole})'}",
    chosen=lambda condition, value, otherwise: f"choose({condition}, {value}, {otherwise})",
    signs={"!": "~", "!=": "~="},
    reserved=frozenset([*MATLAB_WORDS, *ARRAYS]),
    declared="{name} = {value};",
    stored="{element} = {value};",
    element="{array}({place})",
    branch="if {variable} == {value}",
    otherwise_branch="elseif {variable} == {value}",
    end="end",
    remark="%",
    first_index=1,
)


def python_tables(model: StandAlone) -> dict[str, str]:
    """Return the tables of a model for the template of Python."""
    runs = model.runs
    first = next(iter(model.parameters.items()), ("k", 1.0))
    return {
        "EXAMPLE": f"{first[0]!r}: {float_text(2 * first[1])}".replace("\\", "\\\\"),
        "STATES": _tuple(map(repr, model.states)),
        "OBSERVABLES": _tuple(map(repr, model.observables)),
        "INPUTS": _tuple(map(repr, model.inputs)),
        "EXPERIMENTS": _tuple(repr(r.name) for r in runs),
        "PARAMETERS": "\n".join(
            f"    {k!r}: {float_text(v)}," for k, v in model.parameters.items()
        ),
        "CONSTANTS": _tuple(map(repr, model.constants)),
        "SIZES": _tuple(map(float_text, model.sizes.values())),
        "START": _tuple(float_text(r.t0) for r in runs),
        "CHANGES": _tuple(str(len(r.changes)) for r in runs),
        "SEEN_AFTER": _tuple(_tuple(map(float_text, r.seen_after)) for r in runs),
        "KNOTS": _tuple(
            _tuple(f"np.array({_row(signal.times)})" for signal in r.inputs.values()) for r in runs
        ),
        "PIECES": _tuple(
            _tuple(f"np.array({_rows(signal.polynomials())})" for signal in r.inputs.values())
            for r in runs
        ),
        "REFERENCE": _tuple(
            f"(np.array({_row(r.times)}), np.array({_rows(r.observables)}))" for r in runs
        ),
    }


def _tuple(texts: Iterable[str]) -> str:
    each = list(texts)
    return f"({', '.join(each)}{',' if len(each) == 1 else ''})"


def _row(values: Iterable[float], separator: str = ", ") -> str:
    return f"[{separator.join(map(float_text, values))}]"


def _rows(rows: Array) -> str:
    return f"[{', '.join(map(_row, rows))}]"


def c_tables(model: StandAlone) -> dict[str, str]:
    """Return the tables of a model for the template of C."""
    runs = model.runs
    empty = "0"  # an array needs at least one element
    seen, inputs, references = [], [], []
    for i, run in enumerate(runs):
        seen.append(f"static const double seen_{i}[] = {{ {_plain(run.seen_after) or empty} }};")
        for k, signal in enumerate(run.inputs.values()):
            inputs.append(
                f"static const double knots_{i}_{k}[] = {{ {_plain(signal.times)} }};\n"
                f"static const double pieces_{i}_{k}[][4] = {_braces(signal.polynomials())};"
            )
        references.append(
            f"static const double times_{i}[] = {{ {_plain(run.times)} }};\n"
            f"static const double values_{i}[][OBSERVABLES] = {_braces(run.observables)};"
        )
    seen.append(
        "static const struct { int count; const double *times; } seen_after[EXPERIMENTS] = {\n    "
        + ", ".join(f"{{ {len(r.seen_after)}, seen_{i} }}" for i, r in enumerate(runs))
        + "\n};"
    )
    every = ", ".join(
        "{ "
        + (
            ", ".join(
                f"{{ {len(signal.times)}, knots_{i}_{k}, pieces_{i}_{k} }}"
                for k, signal in enumerate(run.inputs.values())
            )
            or "{ 0, 0, 0 }"
        )
        + " }"
        for i, run in enumerate(runs)
    )
    inputs.append(f"static const Input all_inputs[EXPERIMENTS][ROOM_INPUTS] = {{\n    {every}\n}};")
    references.append(
        "static const Reference references[EXPERIMENTS] = {\n    "
        + ", ".join(f"{{ {len(r.times)}, times_{i}, values_{i} }}" for i, r in enumerate(runs))
        + "\n};"
    )
    return {
        "STATES": _quoted(model.states),
        "OBSERVABLES": _quoted(model.observables),
        "PARAMETER_NAMES": _quoted(model.parameters) or empty,
        "EXPERIMENTS": _quoted(r.name for r in runs),
        "PARAMETERS": ", ".join(map(float_text, model.parameters.values())) or empty,
        "SIZES": _plain(model.sizes.values()),
        "START": _plain(r.t0 for r in runs),
        "CHANGES": ", ".join(str(len(r.changes)) for r in runs),
        "SEEN_AFTER": "\n".join(seen),
        "INPUTS": "\n".join(inputs),
        "REFERENCE": "\n".join(references),
    }


def _plain(values: Iterable[float]) -> str:
    return ", ".join(map(float_text, values))


def _braces(rows: Array) -> str:
    return "{ " + ", ".join(f"{{ {_plain(row)} }}" for row in rows) + " }"


def _quoted(names: Iterable[str]) -> str:
    """Return ASCII texts in double quotes, as C and Julia read them."""
    return ", ".join(json.dumps(re.sub(r"[^ -~]", "?", name)) for name in names)


def julia_tables(model: StandAlone) -> dict[str, str]:
    """Return the tables of a model for the template of Julia."""
    runs = model.runs

    def dollars(text: str) -> str:
        return text.replace("$", r"\$")  # Julia interpolates the name after it

    return {
        "STATES": _quoted(model.states),
        "OBSERVABLES": _quoted(model.observables),
        "PARAMETER_NAMES": dollars(_quoted(model.parameters)),
        "EXPERIMENTS": dollars(_quoted(r.name for r in runs)),
        "PARAMETERS": ", ".join(map(float_text, model.parameters.values())),
        "SIZES": _plain(model.sizes.values()),
        "START": _plain(r.t0 for r in runs),
        "CHANGES": ", ".join(str(len(r.changes)) for r in runs),
        "SEEN_AFTER": _vector(f"Float64{_row(r.seen_after)}" for r in runs),
        "KNOTS": _vector(
            "Vector{Float64}" + _vector(_row(signal.times) for signal in r.inputs.values())
            for r in runs
        ),
        "PIECES": _vector(
            "Vector{Vector{Float64}}"
            + _vector(_vector(map(_row, signal.polynomials())) for signal in r.inputs.values())
            for r in runs
        ),
        "REFERENCE_TIMES": _vector(_row(r.times) for r in runs),
        "REFERENCE_VALUES": _vector(_vector(map(_row, r.observables)) for r in runs),
    }


def _vector(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"


def matlab_tables(model: StandAlone) -> dict[str, str]:
    """Return the tables of a model for the template of MATLAB."""
    runs = model.runs
    return {
        "STATES": _single(model.states),
        "OBSERVABLES": _single(model.observables),
        "PARAMETER_NAMES": _single(model.parameters),
        "EXPERIMENTS": _single(r.name for r in runs),
        "PARAMETERS": "\n    ".join(
            f"{float_text(v)} % {_comment(k)}" for k, v in model.parameters.items()
        ),
        "SIZES": " ".join(map(float_text, model.sizes.values())),
        "START": " ".join(float_text(r.t0) for r in runs),
        "CHANGES": " ".join(str(len(r.changes)) for r in runs),
        "SEEN_AFTER": _cells(_row(r.seen_after, " ") for r in runs),
        "KNOTS": _cells(
            _cells(_row(signal.times, " ") for signal in r.inputs.values()) for r in runs
        ),
        "PIECES": _cells(
            _cells(_matrix(signal.polynomials()) for signal in r.inputs.values()) for r in runs
        ),
        "REFERENCE_TIMES": _cells(_row(r.times, " ") for r in runs),
        "REFERENCE_VALUES": _cells(_matrix(r.observables) for r in runs),
    }


def _comment(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text)


def _single(names: Iterable[str]) -> str:
    return ", ".join("'" + _comment(name).replace("'", "''") + "'" for name in names)


def _cells(texts: Iterable[str]) -> str:
    return "{" + ", ".join(texts) + "}"


def _matrix(rows: Array) -> str:
    return f"[{'; '.join(' '.join(map(float_text, row)) for row in rows)}]"


@dataclass(frozen=True)
class Target:
    """A language in which programs are written: its spelling, template and tables."""

    name: str
    language: Language
    template: str
    tables: Callable[[StandAlone], dict[str, str]]
    run: str  # the command that compares a program with odefit's values


TARGETS: Mapping[str, Target] = {
    ".py": Target("Python", PYTHON, "python", python_tables, "python {file}"),
    ".c": Target("C", C, "c", c_tables, "cc -std=c99 -O2 {file} -lm -o {stem} && ./{stem}"),
    ".jl": Target("Julia", JULIA, "julia", julia_tables, "julia {file}"),
    ".m": Target("MATLAB", MATLAB, "matlab", matlab_tables, "octave --eval {stem}"),
}
"""The languages by the suffix of their files."""

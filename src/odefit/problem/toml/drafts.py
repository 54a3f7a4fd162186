"""A first problem file for a CSV table: guessed roles of columns, and a placeholder model."""

from __future__ import annotations

import json
import math
import os
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from odefit.common.errors import InputError
from odefit.problem.dosing.subjects import IDENTIFIERS
from odefit.problem.inputs.cells import is_missing
from odefit.problem.inputs.file_access import CONTROL
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import read_cells
from odefit.problem.toml.draft_columns import Columns, are_counts
from odefit.problem.toml.draft_limits import table_with_limits
from odefit.problem.toml.draft_names import is_name, unit_of_time
from odefit.problem.toml.reading import problem_from_mapping

FIRST_UNKNOWNS = ("rate", "level", "initial value")
"""The noise parameter of the placeholder for each observable."""

FEWEST = 5
"""Fewest values of an observable for which its noise is estimated."""


@dataclass(eq=False)
class Draft:
    """The text of a problem file, and remarks on the guesses in it."""

    text: str
    # a sentence on each unused column, with a remedy
    remarks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # other oddities of the table
    # the table that the problem file names instead, by its name beside the file
    table: tuple[str, str] | None = None


def draft(data: Path, folder: Path, name: str, sheet: str | None = None) -> Draft:
    """Return a problem file for a table, with a placeholder for the model.

    The name of the table is written relative to `folder`, that of the problem file. Where it has
    texts such as ``<0.5``, the problem file names a new table with limits and marks for them.
    Raises InputError if the table has no times, or no column that may be a measurement.
    """
    issues = Issues()
    if sheet is not None:
        data = data.with_name(f"{data.name}#{sheet}")
    cells = read_cells(data, str(data), issues)
    issues.raise_errors()
    assert cells is not None
    columns = Columns(cells, str(data))
    table = None
    relative = Path(os.path.relpath(data, folder)).as_posix()
    if columns.limits:
        relative = f"{name}_limits.csv"
        named = {columns.named.get(n, n): pair for n, pair in columns.limits.items()}
        table = relative, table_with_limits(cells, named)
    written = _Writer(columns, relative, name).text()
    text = CONTROL.sub(lambda c: repr(c[0])[1:-1], written)  # in comments
    drafted = Draft(text, columns.remarks, columns.notes, table)
    # The user named the table, so it may be anywhere.
    anywhere = Path(os.path.realpath(data)).parent
    with tempfile.TemporaryDirectory() as temporary:
        if table is not None:
            folder = anywhere = Path(temporary)
            (folder / relative).write_text(table[1], encoding="utf-8")
        problem_from_mapping(tomllib.loads(drafted.text), folder, name, within=anywhere)
    return drafted


class _Writer:
    """Writes a problem file."""

    def __init__(self, columns: Columns, data: str, name: str) -> None:
        self.columns, self.data, self.name = columns, data, name
        self._taken = {*columns.texts, "t"}
        self.parameters: dict[str, str] = {}
        self.ode: dict[str, str] = {}
        self.observables: dict[str, str] = {}
        self.initial: dict[str, str] = {}
        self.doses: list[str] = []
        self.observable = ""
        self.measured: dict[str, list[float]] = {}
        self._find_measured()
        if columns.dosing:
            self._compartment()
        else:
            self._relaxations()

    def text(self) -> str:
        """Return the problem file."""
        c = self.columns
        unit = "d" if c.time in c.dated else unit_of_time(c.named.get(c.time, c.time))
        lines = [
            f"# A first problem file for {self.data}, written by odefit new.",
            "# It runs as it is, but the equations are a PLACEHOLDER: replace the marked parts.",
            "format = 1",
            f"name = {_quoted(self.name)}",
        ]
        if unit:
            lines.append(f"time_unit = {_quoted(unit)}")
        else:
            lines.append('# time_unit = "h"    # for labels')
        lines += ["", "# PLACEHOLDER: the right-hand side of each state; t is the time.", "[ode]"]
        lines += _table(self.ode)
        lines += [
            "",
            "# What was measured, in terms of the states: a column of the data for each name."
            if not self.observable and "DV" not in c.roles
            else "# What was measured, in terms of the states.",
            "[observables]",
            *_table(self.observables),
        ]
        if c.inputs:
            lines += [
                "",
                "# Known functions of time. These columns are taken for inputs because of their",
                "# name, or because they have few different values and no gaps.",
                "[inputs]",
                *(f'{n} = {{ interpolation = "{kind}" }}' for n, kind in c.inputs.items()),
            ]
        lines += [
            "",
            "# What is estimated. The bounds are guessed from the data: narrower ones are better.",
            "[parameters]",
            *(f"{n} = {{ {fields} }}" for n, fields in self.parameters.items()),
            "",
            "# The states at the first time: a number, or an unknown with bounds.",
            "[initial]",
            *(f"{n} = {value}" for n, value in self.initial.items()),
        ]
        lines += self._noise()
        lines += ["", "[[experiment]]"]
        if c.by is not None:
            kind = "subject" if c.by.upper() in IDENTIFIERS else c.by
            lines += [f'name = "{kind} {{}}"']
        lines += [f"data = {_quoted(self.data)}"]
        if c.time != "t":
            lines += [f"time = {_quoted(c.named.get(c.time, c.time))}"]
        used = [*c.observables, *c.sds, *c.marks, *c.inputs]
        named = {n: n for n in used if n in c.named} | c.stated
        if pairs := [f"{n} = {_quoted(c.named.get(o, o))}" for n, o in named.items()]:
            why = "one value a row" if "DV" in c.stated else "what the table calls them"
            lines += [f"columns = {{ {', '.join(pairs)} }}    # {why}"]
        if c.by is not None:
            subject_column = _quoted(c.named.get(c.by, c.by))
            lines += [f"by = {subject_column}    # an experiment for each of its values"]
        if self.observable:
            lines += [self.observable]
        if self.doses:
            lines += [f"doses = {{ {', '.join(self.doses)} }}"]
        elif "DV" in c.roles and c.by is None and not self.observable:
            lines += [f"observable = {_quoted(next(iter(self.observables)))}"]
        runs = [c.by] if c.by in c.values and c.by.upper() not in IDENTIFIERS else []
        if covariates := [n for n in runs + c.covariates if n not in c.named]:
            lines += [
                "",
                f"# Columns that equations may refer to as covariates: {', '.join(covariates)}.",
            ]
        if renamed := [n for n in runs + c.covariates if n in c.named]:
            written = ", ".join(f"{n} = {_quoted(c.named[n])}" for n in renamed)
            lines += ["", f"# For equations with these names add columns = {{ {written} }}."]
        if c.remarks:
            lines += ["", "# Columns that are not used:", *(f"# - {r}" for r in c.remarks)]
        return "\n".join(lines) + "\n"

    def _find_measured(self) -> None:
        c = self.columns
        if "DV" not in c.roles:
            self.measured = {n: c.of(n) for n in c.observables}
            return
        if c.roles["DV"] not in c.values:
            raise InputError(f"{c.place}, column {c.roles['DV']}: no numbers")
        dv = c.values[c.roles["DV"]]
        if "DVID" not in c.roles:
            self.measured = {self._free("c"): c.by_role("DV")}
            return
        codes = [cell.strip() for cell in c.texts[c.roles["DVID"]]]
        measured: dict[str, list[float]] = {}
        for code, value in zip(codes, dv, strict=True):
            if not is_missing(code) and not math.isnan(value):
                measured.setdefault(code, []).append(value)
        names = {
            code: self._free(code if is_name(code) else f"y{i}")
            for i, code in enumerate(measured, 1)
        }
        self.measured = {names[code]: values for code, values in measured.items()}
        pairs = ", ".join(f"{_quoted(code)} = {_quoted(n)}" for code, n in names.items())
        self.observable = f"observable = {{ {pairs} }}"

    def _free(self, name: str) -> str:
        """Return a free name, and reserve it."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _relaxations(self) -> None:
        """Make every observable relax to a level that inputs change."""
        c = self.columns
        low_rate, high_rate = 0.01 / c.span, 100.0 / c.span
        states = {}
        for name, values in self.measured.items():
            state = name if "DV" not in c.roles else self._free(f"x_{name}")
            states[name] = state
            low, high = min(values), max(values)
            width = (high - low) or abs(high) or 1.0
            rate, level = self._free(f"rate_{state}"), self._free(f"level_{state}")
            self.parameters[rate] = (
                f'lower = {low_rate:.3g}, upper = {high_rate:.3g}, scale = "log10"'
            )
            few = len(values) < len(FIRST_UNKNOWNS)
            # Counts are nonnegative, and so is their mean.
            least = 0.0 if self._counted(name) else low - width
            self.parameters[level] = (
                f"fixed = {values[-1]:.6g}"
                if few
                else f"lower = {least:.3g}, upper = {high + width:.3g}"
            )
            target = level
            for column in c.inputs if len(values) >= FEWEST + len(c.inputs) else ():
                known = c.of(column)
                gain = self._free(f"gain_{column}_{state}")
                most = 10.0 * width / ((max(known) - min(known)) or 1.0)
                self.parameters[gain] = f"lower = {-most:.3g}, upper = {most:.3g}"
                target += f" + {gain}*{column}"
            self.ode[state] = f"{rate}*({target} - {state})"
            self.initial[state] = (
                f"{values[0]:.6g}"
                if len(values) <= len(FIRST_UNKNOWNS)
                else f"{{ lower = {least:.3g}, upper = {high + width:.3g}{self._each()} }}"
            )
        self.observables = dict(states)

    def _counted(self, name: str) -> bool:
        """Return whether an observable is counted and has count noise."""
        c, values = self.columns, self.measured[name]
        marked = c.limits or f"{name}_cens" in c.marks
        marked = marked or any(c.by_role(r) for r in ("CENS", "BLQ"))
        doses = c.dosing or f"{name}_sd" in c.sds or marked
        # The placeholder adds an input with either sign, so that its mean may be negative.
        return not doses and not c.inputs and len(values) >= FEWEST and are_counts(values)

    def _each(self) -> str:
        """Return the field that gives each subject its own value, if the data suffice."""
        c = self.columns
        subjects = 1 if c.by is None else len(set(c.texts[c.by]))
        enough = min(map(len, self.measured.values())) >= len(FIRST_UNKNOWNS) * subjects
        return ", per_experiment = true" if c.by is not None and enough else ""

    def _compartment(self) -> None:
        """Direct doses into one compartment."""
        c = self.columns
        state, rate = self._free("A"), self._free("k")
        each = self._each()
        self.ode[state] = f"-{rate}*{state}"
        for column in c.inputs:
            c.remarks.append(
                f"{column}: looks like an input; write it under [inputs] if the equations need it"
            )
        c.inputs = {}
        self.initial[state] = "0.0"
        self.parameters[rate] = (
            f'lower = {0.01 / c.span:.3g}, upper = {100.0 / c.span:.3g}, scale = "log10"{each}'
        )
        amounts = [v for v in c.by_role("AMT") if v > 0] or [1.0]
        for name, values in self.measured.items():
            several = len(self.measured) > 1
            volume = self._free(f"V_{name}" if several else "V")
            typical = max(amounts) / (max(map(abs, values), default=1.0) or 1.0)
            self.parameters[volume] = (
                f'lower = {typical / 1e3:.3g}, upper = {typical * 1e3:.3g}, scale = "log10"{each}'
            )
            self.observables[name] = f"{state}/{volume}"
        self.doses = [f"into = {self._target(state)}"]
        for code, key in ((-1.0, "rate"), (-2.0, "duration")):
            if code in c.by_role("RATE"):
                unknown = self._free("R" if key == "rate" else "D")
                typical = max(amounts) / c.span if key == "rate" else c.span
                self.parameters[unknown] = (
                    f'lower = {typical / 1e3:.3g}, upper = {typical * 1e3:.3g}, scale = "log10"'
                )
                self.doses.append(f"{key} = {_quoted(unknown)}")

    def _target(self, state: str) -> str:
        """Return the target of doses: the state, or one for each compartment."""
        c = self.columns
        if not {"CMT", "AMT"} <= c.roles.keys() or c.roles["AMT"] not in c.values:
            return _quoted(state)
        amounts, codes = c.values[c.roles["AMT"]], c.texts[c.roles["CMT"]]
        used = {code.strip() for code, amount in zip(codes, amounts, strict=True) if amount > 0}
        used = {code for code in used if not is_missing(code)}
        if len(used) < 2:
            return _quoted(state)
        return f"{{ {', '.join(f'{_quoted(code)} = {_quoted(state)}' for code in sorted(used))} }}"

    def _noise(self) -> list[str]:
        c = self.columns
        with_sd = {n[:-3] for n in c.sds if all(_filled(c, n))}
        rest = [n for n in self.measured if n not in with_sd]
        few = [n for n in rest if len(self.measured[n]) < FEWEST]
        codes = [v for role in ("CENS", "BLQ") for v in c.by_role(role)]
        codes += [v for name in c.marks for v in c.of(name)]
        censored = bool(c.limits) or any(v != 0 for v in codes)
        if not rest:
            return ["", "# The standard deviations are in the columns with _sd after their name."]
        counts = '{ distribution = "negative-binomial", dispersion = "estimate" }'
        plain = '{ sd = "estimate" }'
        lines = [f"{n} = {counts if self._counted(n) else plain}" for n in rest]
        if few and not c.sds and not censored:
            return [
                "",
                "# With few values, all measurements have the same weight (plain least squares).",
                "# [noise]",
                *(f"# {line}" for line in lines),
            ]
        why = ["# How the measurements scatter; a number or relative = 0.1 where it is known."]
        if c.sds:
            why = ["# Where no column _sd says how the measurements scatter."]
        counted = [n for n in rest if self._counted(n)]
        if counted:
            why += [
                f"# {', '.join(counted)}: whole numbers, taken for counts; if they are not, write",
                '# { sd = "estimate" }, and if they scatter no more than independent events do,',
                '# { distribution = "poisson" }.',
            ]
        return ["", *why, "[noise]", *lines]


def _filled(columns: Columns, name: str) -> list[bool]:
    """Return for each measured value whether its standard deviation is given."""
    pairs = zip(columns.values[name[:-3]], columns.values[name], strict=True)
    return [not math.isnan(sd) for value, sd in pairs if not math.isnan(value)]


def _table(table: Mapping[str, str]) -> Sequence[str]:
    return [f"{name} = {_quoted(text)}" for name, text in table.items()]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

"""Notations of other programs in problem files: the sections, keys and equations meant by them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from odefit.common.errors import MAX_SHOWN_LENGTH, shown
from odefit.problem.inputs.issues import Issues
from odefit.problem.model import DERIVATIVE
from odefit.problem.noise import NOISE_FIELDS
from odefit.problem.noise_habits import is_noise_field, noise_meant
from odefit.problem.parameters import MEANT_FIELDS, PARAMETER_FIELDS

_SECTIONS = {
    "ode": "equations odes dynamics system rhs states derivatives differential_equations diff",
    "observables": "outputs output measurements measured observed observation observations",
    "parameters": "unknowns estimate estimates params",
    "initial": "initial_conditions initial_condition initial_values inits init ic ics x0 y0",
    "noise": "error errors error_model sigma sd measurement_noise measurement_error",
    "definitions": "variables expressions assignments algebra",
    "inputs": "forcing forcings covariates",
    "name": "title",
    "description": "comment notes",
    "format": "version",
}
SECTIONS: Mapping[str, str] = {w: key for key, words in _SECTIONS.items() for w in words.split()}
"""Words of other programs for sections and keys of a problem file, with ours."""

_EXPERIMENT = {
    "data": "file filename path csv table dataset datafile data_file measurements",
    "time": "time_column times time_col tcol t",
    "by": "subject subjects group_by group id groupby individual",
    "t0": "start start_time tstart t_start begin",
    "initial": "initial_conditions initial_values inits init x0 y0",
    "constants": "params settings",
    "name": "label title id_name",
    "steady_state": "steady equilibrium",
}
EXPERIMENT: Mapping[str, str] = {
    w: key for key, words in _EXPERIMENT.items() for w in words.split()
}
"""Words of other programs for keys of an experiment, with ours."""

_EVENT = {"time": "at t", "when": "trigger condition if", "every": "interval ii period"}
EVENT: Mapping[str, str] = {w: key for key, words in _EVENT.items() for w in words.split()}
"""Words of other programs for keys of an event, with ours."""

ASSIGN = 'assign = { x = "x + 100" }'
ASSIGN_WORDS = frozenset("set action actions then change dose amount assignments".split())
WHOLE = (
    "ode", "algebraic", "observables", "parameters", "noise", "inputs", "functions",
    "definitions", "reactions", "units", "time_unit",
)  # fmt: skip
"""Sections that hold for all experiments."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_WRITTEN_DERIVATIVE = re.compile(r"d_?([A-Za-z]\w*?)_?dt\Z|([A-Za-z]\w*?)_?dot\Z|d([A-Za-z]\w*)\Z")
_AT_START = re.compile(r"([A-Za-z_]\w*)\s*\(\s*(?:0|0\.0|t0|t_0|t=0)\s*\)\Z")
_EQUATION = re.compile(r"\s*([^=<>!]{1,80}?)\s*=\s*([^=].*)\Z", re.DOTALL)


def word_of(key: object) -> str:
    """Return a key as the tables of words have it."""
    return str(key).strip().casefold().replace("-", "_").replace(" ", "_")


def section_hint(key: str, value: Any) -> str:
    """Return where an unknown section of a problem file belongs, or an empty text."""
    word = word_of(key)
    if word in {"event", "events"}:
        return f"; write [[experiment.event]] below [[experiment]], with {ASSIGN}"
    if word in {"dose", "doses", "dosing"}:
        return f"; write [[experiment.event]] below [[experiment]], with time = 0 and {ASSIGN}"
    if word in {"data", "dataset", "datasets"}:
        return '; write [[experiment]], and below it data = "FILE.csv"'
    return ""


def experiment_hint(key: str, value: Any) -> str:
    """Return where an unknown key of an experiment belongs, or an empty text."""
    if key in WHOLE:
        written = key if key == "time_unit" else f"[{key}]"
        return f"; {written} holds for all experiments: write it above [[experiment]]"
    return ""


def with_experiment(raw: Mapping[str, Any], issues: Issues) -> Mapping[str, Any]:
    """Return a problem with data and events in an experiment, and report misplaced ones."""
    if "experiment" in raw or not isinstance(raw.get("data"), (str, Mapping)):
        return raw
    value = raw["data"]
    if isinstance(value, Mapping):
        files = [v for k, v in value.items() if EXPERIMENT.get(word_of(k), k) == "data"]
        if not files or not isinstance(files[0], str):
            return raw
        value = files[0]
    issues.error("data", f"write [[experiment]], and below it data = {_quoted(value)}")
    rest = {key: v for key, v in raw.items() if key != "data"}
    return {**rest, "experiment": [{"data": value}]}


def states_of(
    table: Mapping[str, Any], initial: Mapping[str, Any], issues: Issues
) -> Mapping[str, Any]:
    """Return right-hand sides by state, with a message for each in the notation of others.

    It recognises ``dx/dt``, ``x'``, ``x(t)``, ``dxdt``, ``x_dot``, whole equations in a list or
    with their left-hand side, and a table for each state.
    """
    states: dict[str, Any] = {}
    for key, value in table.items():
        place = f"[ode] {key}"
        for name, right, wrong in _equations(str(key), value, table, initial):
            if wrong:
                issues.error(place, f"{wrong}; write {name} = {_quoted(right)}")
            if name in states:
                issues.error(place, f"a second right-hand side of '{name}'; keep one")
            states.setdefault(name, right)
    return states


def initial_of(
    table: Mapping[str, Any], states: Mapping[str, Any], issues: Issues
) -> Mapping[str, Any]:
    """Return initial values by state; ``x(0)`` and the like are reported, and taken for x."""
    initial: dict[str, Any] = {}
    for key, value in table.items():
        match = _AT_START.match(str(key))
        state = match[1] if match is not None and match[1] in states else key
        if state != key:
            issues.error(f"[initial] {key}", f"write {state} = {_quoted(value)}")
        initial.setdefault(state, value)
    return initial


def _equations(
    key: str, value: Any, table: Mapping[str, Any], initial: Mapping[str, Any]
) -> list[tuple[str, Any, str]]:
    """Return state, right-hand side and mistake of each equation that an entry holds."""
    if isinstance(value, list) and value and all(_left(v) for v in value):
        split = [_split(v) for v in value]
        wrong = "a list of equations; each state has a line of its own"
        return [(name, right, wrong) for name, right in split]
    if isinstance(value, Mapping):
        inner = [v for v in value.values() if isinstance(v, str)]
        if len(inner) == 1:
            rest = "; the initial value belongs in [initial]" * (len(value) > 1)
            return [(key, inner[0], f"got a table{rest}")]
    name, wrong = _state(key, table, initial), ""
    if name != key:
        wrong = "the name of the state stands alone on the left"
    if _left(value):
        wrong = wrong or "the right-hand side stands alone between the quotes"
        value = _split(value)[1]
    return [(name, value, wrong)]


def _left(value: Any) -> str:
    """Return the state on the left of an equation that is written out, or an empty text."""
    match = _EQUATION.match(value) if isinstance(value, str) and len(value) < 2000 else None
    if match is None:
        return ""
    meant = DERIVATIVE.match(match[1])
    if meant is not None:
        return str(meant[1] or meant[2])
    return match[1] if _NAME.fullmatch(match[1]) else ""


def _split(value: str) -> tuple[str, str]:
    """Return state and right-hand side of an equation that :func:`_left` knows."""
    name, match = _left(value), _EQUATION.match(value)
    written = _WRITTEN_DERIVATIVE.match(name)
    if written is not None and name.endswith(("dt", "dot")):
        name = str(written[1] or written[2])
    return name, match[2].strip() if match is not None else value


def _state(key: str, table: Mapping[str, Any], initial: Mapping[str, Any]) -> str:
    """Return the state whose derivative a key means; the key itself if it is a name like others."""
    meant = DERIVATIVE.match(key)
    if meant is not None:
        return str(meant[1] or meant[2])
    written = _WRITTEN_DERIVATIVE.match(key)
    if written is None or key in initial:
        return key
    name = str(written[1] or written[2] or written[3])
    used = {n for v in table.values() if isinstance(v, str) for n in _NAME.findall(v[:10_000])}
    return name if name in initial and name not in table and key not in used else key


def without_fields(
    section: str, table: Mapping[str, Any], names: Sequence[str], issues: Issues
) -> Mapping[str, Any]:
    """Return a section without fields in the place of names, which are reported.

    The message shows the right table, for the possible `names` of the section or for one that is
    declared.
    """
    noise = section == "noise"
    wrong = [k for k, v in table.items() if _misplaced(k, v, names, noise=noise)]
    if not wrong:
        return table
    called = table.get("name")
    if not noise and isinstance(called, str):
        wrong.append("name")
    name = called if isinstance(called, str) and _NAME.fullmatch(called) else next(iter(names), "y")
    fields = {MEANT_FIELDS.get(k, k): table[k] for k in wrong if k != "name"}
    written = ", ".join(f"{k} = {_quoted(v)}" for k, v in fields.items())
    meant = noise_meant(fields, NOISE_FIELDS, name) if noise else None
    issues.error(
        f"[{section}] {', '.join(wrong)}",
        f"the fields of {'an observable' if noise else 'a parameter'} belong in its table; "
        f"{meant or f'write {name} = {{ {written} }}'}",
    )
    rest = {k: v for k, v in table.items() if k not in wrong}
    return {**rest, name: {"sd": 1.0} if noise else {}}


def _misplaced(key: str, value: Any, known: Sequence[str], *, noise: bool) -> bool:
    if key in known or isinstance(value, (Mapping, list)):
        return False
    if noise:
        return is_noise_field(key, NOISE_FIELDS)
    return key in PARAMETER_FIELDS or key in MEANT_FIELDS


def event_hint(key: str, value: Any) -> str:
    """Return the remedy for an unknown key of an event, or an empty text."""
    if word_of(key) in ASSIGN_WORDS:
        return f"; write {ASSIGN}, with the state that changes"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if _NAME.fullmatch(key) and (number or isinstance(value, str)):
        return f"; write assign = {{ {key} = {_quoted(value)} }} if it is a state"
    return ""


def assignment(value: Any) -> str:
    """Return the notation of an assignment that was given as a text, or an empty text."""
    if isinstance(value, str) and (match := _EQUATION.match(value)) and _NAME.fullmatch(match[1]):
        return f"; write assign = {{ {match[1]} = {_quoted(match[2].strip())} }}"
    return ""


def _quoted(value: Any) -> str:
    """Return a value as a problem file has it, or ``...`` if that would be long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"{value:g}"
    if isinstance(value, str) and value.isprintable() and len(value) <= MAX_SHOWN_LENGTH:
        return f'"{value}"'
    return '"..."' if isinstance(value, str) else shown(value)

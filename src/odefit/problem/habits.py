"""Habits of other programs: their names of arguments, and mistaken values for a problem."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from odefit.common.errors import InputError, did_you_mean, one_of, shown

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

BOUNDS = 'parameters={"k": (0, 5)}'
GUESS = 'parameters={"k": {"lower": 0, "upper": 5, "guess": 1.0}}'
INITIAL = 'initial={"x": 1.0}'
NOISE = 'noise={"y": {"sd": 0.1}}, or a column y_sd of the data'

PROBLEM_HABITS: Mapping[str, str] = {
    "bounds": BOUNDS, "params": BOUNDS, "lower": BOUNDS, "upper": BOUNDS,
    "guess": GUESS, "guesses": GUESS, "p0": GUESS, "init": GUESS,
    "x0": INITIAL, "y0": INITIAL, "u0": INITIAL, "ic": INITIAL, "initial_values": INITIAL,
    "sigma": NOISE, "sd": NOISE, "weights": NOISE, "yerr": NOISE,
    "ode": 'odefit.Problem(odefit.Model(ode={"x": "-k*x"}), data)',
    "observables": 'odefit.Model(ode=..., observables={"y": "s*x"})',
    "constants": 'odefit.Model(ode=..., constants={"V": 2.0})',
    "times": 'data={"t": [0, 1, 2], "x": [1.0, 0.6, 0.4]}',
}  # fmt: skip

MODEL_HABITS: Mapping[str, str] = {
    "parameters": f"odefit.Problem(model, data, {BOUNDS})",
    "params": f"odefit.Problem(model, data, {BOUNDS})",
    "bounds": f"odefit.Problem(model, data, {BOUNDS})",
    "initial": f"odefit.Problem(model, data, {INITIAL})",
    "x0": f"odefit.Problem(model, data, {INITIAL})",
    "y0": f"odefit.Problem(model, data, {INITIAL})",
    "noise": f"odefit.Problem(model, data, {NOISE})",
    "data": "odefit.Problem(model, data)",
    "events": "odefit.Experiment(name, data, events=[...])",
}

START = 'start={"k": 1.0}'
STARTS = "odefit.fit(problem, odefit.MultiStart(starts=50))"

FIT_HABITS: Mapping[str, str] = {
    **PROBLEM_HABITS,
    "data": "odefit.Problem(model, data)",
    "starts": STARTS, "n_starts": STARTS, "x0": START, "p0": START, "guess": START,
    "random_state": "seed=1", "n_jobs": "jobs=2", "timeout": "time_limit=60",
    "maxtime": "time_limit=60",
}  # fmt: skip
"""Our arguments, by the names that other programs use."""


def with_habits(
    habits: Mapping[str, str],
) -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]:
    """Make a function refuse other programs' names of arguments, and name the right ones."""

    def decorated(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
        known = frozenset(inspect.signature(function).parameters)
        owner = function.__qualname__.partition(".")[0]

        @functools.wraps(function)
        def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
            if unknown := [name for name in kwargs if name not in known]:
                raise InputError(_remark(owner, name, known, habits) for name in unknown)
            return function(*args, **kwargs)

        return called

    return decorated


def _remark(owner: str, name: str, known: frozenset[str], habits: Mapping[str, str]) -> str:
    hint = f"; write {habits[name]}" if name in habits else did_you_mean(name, known - {"self"})
    return f"odefit.{owner} has no argument {name!r}{hint}"


INTERPOLATIONS: Mapping[str, str] = {
    **dict.fromkeys(
        ("zoh", "zero-order hold", "hold", "step", "steps", "previous", "nearest", "piecewise"),
        "constant",
    ),
    **dict.fromkeys(("foh", "first-order hold", "lin", "pchip", "interp"), "linear"),
    **dict.fromkeys(("spline", "cubicspline", "akima", "smooth"), "cubic"),
}
"""Other programs' words for the interpolation of an input, with ours."""


def interpolation_hint(value: Any, known: tuple[str, ...]) -> str:
    """Return the remedy for an unknown interpolation."""
    if not isinstance(value, str):
        return ""
    meant = INTERPOLATIONS.get(value.strip().lower())
    return f'; write "{meant}"' if meant else one_of(value, known)


def not_a_model(value: Any) -> InputError:
    """Return the error for a model of a wrong type."""
    made = 'odefit.Model(ode={"x": "-k*x"})'
    got = f"got an object of {type(value).__name__}"
    if isinstance(value, (str, os.PathLike)):
        got, made = f"got {shown(value)}", f"odefit.load({os.fspath(value)!r}) for a problem file"
    elif isinstance(value, Mapping):
        got, made = "got a dict", "odefit.Model(ode={...}) for the right-hand sides"
    elif callable(value) and not isinstance(value, type):
        name = getattr(value, "__name__", type(value).__name__)
        got = f"got the Python function {name}"
        made = f"odefit.Problem(odefit.Model.from_function({name}), data, {BOUNDS}, {INITIAL})"
    return InputError(f"model: expected an odefit.Model, {got}; write {made}")


def not_a_problem(verb: str, value: Any) -> InputError:
    """Return the error for a call of ``odefit.verb`` whose problem has a wrong type."""
    made = "odefit.Problem(model, data, parameters=..., initial=...)"
    got = f"got {shown(value)}"
    if isinstance(value, (str, os.PathLike)):
        made = f"odefit.{verb}(odefit.load({os.fspath(value)!r}))"
    elif callable(value) and not isinstance(value, type):
        name = getattr(value, "__name__", type(value).__name__)
        got = f"got the Python function {name}"
        made = (
            f"odefit.Problem(odefit.Model.from_function({name}), data, {BOUNDS}, {INITIAL}) for "
            "the problem"
        )
    elif hasattr(value, "problem"):
        made = f"odefit.{verb}(result.problem)"
    else:
        got = f"got an object of {type(value).__name__}"
    return InputError(f"{verb}: expected a problem, {got}; write {made}")

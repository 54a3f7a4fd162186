"""A problem that estimates other quantities, or has other bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from odefit.common.errors import did_you_mean
from odefit.expressions.expressions import Expression, parse
from odefit.problem.building.preparation import Definition
from odefit.problem.experiment import Experiment
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.noise import Noise
from odefit.problem.parameters import Parameter

Change = Callable[[Parameter], Parameter]


NOISE_PARAMETERS = {"sd": "sigma", "dispersion": "alpha", "correlation_time": "tau"}
"""Example names for parameters in fields of the noise."""


@dataclass(frozen=True)
class Target:
    """The meaning of a key of a revision."""

    key: str  # the key as given
    name: str  # name of a parameter, a state (for its initial value), or a noise parameter
    experiment: str | None  # the only experiment it applies to; None for all
    observable: str | None = None  # the observable of a noise parameter; None for others
    noise_field: str = ""  # the field of the noise that holds the noise parameter


def revised(
    definition: Definition,
    fix: Mapping[str, float] | None,
    free: Iterable[str] | None,
    bounds: Mapping[str, Sequence[float | None]] | None,
    guess: Mapping[str, float] | None,
    issues: Issues,
) -> dict[str, Any]:
    """Return the arguments of ``Problem`` that change, see :meth:`Problem.with_unknowns`."""
    revision = _Revision(definition, issues)
    # first free, then bounds and guesses, then fix
    fixed = dict(issues.items("fix", fix or {}))
    pairs = dict(issues.items("bounds", bounds or {}))
    freed = [free] if isinstance(free, str) else [str(key) for key in free or ()]
    for key in freed:
        if key in fixed:
            issues.error("free", f"{key!r} is also fixed; keep one of the two")
        elif target := revision._target(key, "free"):
            revision._free(target, rebounded=key in pairs)
    for key, setting in pairs.items():
        pair = revision._pair(key, setting)
        target = revision._target(key, "bounds")
        if pair is not None and target is not None and revision._estimable(target, "bounds"):
            revision._change(target, partial(_bounded, low=pair[0], high=pair[1]))
    for key, setting in issues.items("guess", guess or {}):
        value = finite_number(setting, f"guess {key}", issues)
        target = revision._target(key, "guess")
        if value is not None and target is not None and revision._estimable(target, "guess"):
            revision._change(target, partial(replace, guess=value))
    for key, setting in fixed.items():
        value = finite_number(setting, f"fix {key}", issues)
        target = revision._target(key, "fix")
        if value is not None and target is not None:
            revision._fix(target, value)
    return {
        "parameters": revision.parameters,
        "initial": revision.initial,
        "noise": revision.noise,
        "experiments": list(revision.experiments.values()),
    }


class _Revision:
    """The state of :func:`revised`."""

    def __init__(self, definition: Definition, issues: Issues) -> None:
        self.states = definition.model.states
        self.issues = issues
        self.parameters: dict[str, Parameter] = dict(definition.parameters)
        self.initial: dict[str, Expression | Parameter] = dict(definition.initial)
        self.noise: dict[str, Noise] = dict(definition.noise)
        self.experiments: dict[str, Experiment] = {e.name: e for e in definition.experiments}
        self.constants = definition.model.constants

    def _target(self, key: str, place: str) -> Target | None:
        """Return the meaning of `key`, or None with the reason noted."""
        noise: dict[str, tuple[str, str]] = {
            n.unknown(o): (o, n.law.spread_field) for o, n in self.noise.items()
        }
        for observable, n in self.noise.items():
            if n.correlation is not None:
                noise[n.correlation_unknown(observable)] = observable, "correlation_time"
        known = {*self.parameters, *self.states}
        if key in noise and key not in known:
            return Target(key, key, None, *noise[key])
        name, experiment = key, None
        if key.endswith("]") and "[" in key:
            name, experiment = key[:-1].split("[", 1)
        if name not in known:
            if name in self.constants:
                self.issues.error(
                    place,
                    f"'{name}' is a constant of the model; declare it as a parameter instead, "
                    "with fixed = ... where it is known",
                )
                return None
            keys = {f"{n}[{e}]" for n in known for e in self.experiments} if experiment else set()
            near = did_you_mean(key, {*known, *noise, *keys})
            self.issues.error(place, f"unknown name {key!r}{near}")
            return None
        if experiment is not None and experiment not in self.experiments:
            have = ", ".join(repr(e) for e in self.experiments)
            near = did_you_mean(experiment, self.experiments)
            self.issues.error(
                place, f"unknown experiment in {key!r}{near} (experiments are: {have})"
            )
            return None
        if len(self.experiments) == 1:
            experiment = None
        return Target(key, name, experiment)

    def _pair(self, key: str, limits: Any) -> tuple[float, float] | None:
        """Return a pair of bounds, or None with the reason noted."""
        place = f"bounds {key}"
        if (
            isinstance(limits, (str, Mapping))
            or not isinstance(limits, Sequence)
            or len(limits) != 2
        ):
            self.issues.error(
                place, f"expected a pair such as (0.0, 1.0), with None for no bound, got {limits!r}"
            )
            return None
        low, high = (
            open_end if end is None else finite_number(end, place, self.issues, infinite=True)
            for end, open_end in zip(limits, (-math.inf, math.inf), strict=True)
        )
        return None if low is None or high is None else (low, high)

    def _free(self, target: Target, *, rebounded: bool) -> None:
        if target.observable is not None:
            noise = self.noise[target.observable]
            change: dict[str, Any] = {target.noise_field: "estimate"}
            self.noise[target.observable] = replace(noise, **change)
            return
        name, experiment = target.name, target.experiment
        if experiment is not None and name in self.parameters:
            self._free_in_one(target, experiment)
            return
        present = self.parameters.get(name) or self._initial(target)
        if isinstance(present, Parameter):
            if not rebounded:
                self._check_open(target.key, present)
            self._change(target, _freed)
            return
        if present is not None and present.constant is None:
            self.issues.error(
                "free",
                f"the initial value of '{name}' is {str(present)!r}; free the names in that "
                "expression, or give a number instead of it",
            )
            return
        start = Parameter(guess=None if present is None else present.constant)
        if experiment is None:
            self.initial[name] = start
        else:
            self._in_experiment(experiment, "initial", name, start)

    def _free_in_one(self, target: Target, experiment: str) -> None:
        """Free a parameter in one experiment."""
        name, parameter = target.name, self.parameters[target.name]
        constants = self.experiments[experiment].constants
        if name in constants:
            if parameter.fixed is not None:
                self._hold_elsewhere(name, experiment, parameter.fixed)
                value = parse(str(constants[name])).constant
                parameter = replace(parameter, fixed=value if value is not None else None)
                self.parameters[name] = replace(_freed(parameter), per_experiment=True)
            left = {k: v for k, v in constants.items() if k != name}
            self.experiments[experiment] = replace(self.experiments[experiment], constants=left)
        elif parameter.fixed is not None:
            self._hold_elsewhere(name, experiment, parameter.fixed)
            self._check_open(target.key, parameter)
            self.parameters[name] = replace(_freed(parameter), per_experiment=True)

    def _check_open(self, key: str, parameter: Parameter) -> None:
        """Report a quantity that cannot vary, even if it is not fixed."""
        if parameter.lower == parameter.upper:
            self.issues.error(
                "free",
                f"the bounds of {key!r} are equal, {parameter.lower:g}, which fixes it; "
                "give other bounds as well",
            )

    def _hold_elsewhere(self, name: str, experiment: str, value: float) -> None:
        """Give a parameter its fixed value in other experiments without their own value."""
        for other, definition in self.experiments.items():
            if other != experiment and name not in definition.constants:
                self._in_experiment(other, "constants", name, parse(repr(value)))

    def _estimable(self, target: Target, place: str) -> bool:
        """Return whether bounds and guess apply to a quantity; if not, the reason is noted."""
        if target.observable is not None:
            self.issues.error(
                place,
                f"'{target.key}' belongs to the noise and is positive; to give it "
                f"{'a guess' if place == 'guess' else place}, declare "
                f"a parameter and write its name in [noise]: "
                f'{target.noise_field} = "{NOISE_PARAMETERS[target.noise_field]}"',
            )
            return False
        if target.experiment is not None and target.name in self.parameters:
            self.issues.error(
                place,
                f"{target.key!r}: the {place} of a parameter hold in all experiments; "
                f"write {target.name!r}",
            )
            return False
        if not (target.name in self.parameters or isinstance(self._initial(target), Parameter)):
            self.issues.error(place, f"{target.key!r} is a known initial value; free it as well")
            return False
        return True

    def _fix(self, target: Target, value: float) -> None:
        name, experiment = target.name, target.experiment
        if target.observable is not None:
            noise = self.noise[target.observable]
            change: dict[str, Any] = {target.noise_field: value}
            self.noise[target.observable] = replace(noise, **change)
        elif name in self.parameters and experiment is not None:
            if self.parameters[name].fixed is None and not self.parameters[name].per_experiment:
                self.issues.error(
                    "fix",
                    f"{target.key!r}: '{name}' has one value for all experiments; fix {name!r}, or "
                    "declare it with per_experiment = true",
                )
                return
            self._in_experiment(experiment, "constants", name, parse(repr(value)))
            if all(name in e.constants for e in self.experiments.values()):
                self.parameters[name] = replace(self.parameters[name], fixed=value)
        elif name in self.parameters or isinstance(self._initial(target), Parameter):
            self._change(target, lambda p: replace(p, fixed=value))
        elif experiment is None:
            self.initial[name] = parse(repr(value))
        else:
            self._in_experiment(experiment, "initial", name, parse(repr(value)))

    def _initial(self, target: Target) -> Expression | Parameter | None:
        """Return the initial value of a target; that of its own experiment takes precedence."""
        if target.experiment is not None:
            own_value = self.experiments[target.experiment].initial.get(target.name)
            if own_value is not None:
                return _parsed(own_value)
        initial = self.initial.get(target.name)
        if target.experiment is None and not isinstance(initial, Parameter):
            owns = [_parsed(e.initial.get(target.name)) for e in self.experiments.values()]
            return next((o for o in owns if isinstance(o, Parameter)), initial)
        return initial

    def _change(self, target: Target, change: Change) -> None:
        """Change the definitions of a target."""
        name, experiment = target.name, target.experiment
        if name in self.parameters:
            self.parameters[name] = change(self.parameters[name])
            return
        if experiment is not None:
            initial = self._initial(target)
            if isinstance(initial, Parameter):
                changed = replace(change(initial), per_experiment=True)
                self._in_experiment(experiment, "initial", name, changed)
            return
        shared = self.initial.get(name)
        if isinstance(shared, Parameter):
            self.initial[name] = change(shared)
        for one, definition in self.experiments.items():
            own_value = _parsed(definition.initial.get(name))
            if isinstance(own_value, Parameter):
                self._in_experiment(one, "initial", name, change(own_value))

    def _in_experiment(self, experiment: str, part: str, name: str, value: Any) -> None:
        """Give one experiment its own value of a constant or initial value."""
        definition = self.experiments[experiment]
        changed: dict[str, Any] = {part: {**getattr(definition, part), name: value}}
        self.experiments[experiment] = replace(definition, **changed)


def _parsed(value: Any) -> Expression | Parameter | None:
    """Return an initial value of an experiment, already parsed."""
    return value if isinstance(value, (Expression, Parameter)) else None


def _freed(parameter: Parameter) -> Parameter:
    """Return an estimated parameter, with its fixed value as the guess if possible."""
    if parameter.fixed is None:
        return parameter
    inside = parameter.lower <= parameter.fixed <= parameter.upper
    return replace(parameter, fixed=None, guess=parameter.fixed if inside else parameter.guess)


def _bounded(parameter: Parameter, low: float, high: float) -> Parameter:
    """Return a parameter with other bounds; a guess outside moves to the nearest bound."""
    guess = parameter.guess
    if guess is not None and low <= high:
        guess = min(max(guess, low), high)
    return replace(parameter, lower=low, upper=high, guess=guess)

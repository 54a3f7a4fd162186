"""Possible observables: those of the problem, states, and new expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any

from odefit.common.errors import InputError, did_you_mean
from odefit.expressions.expressions import Expression, ExpressionError, parse
from odefit.problem.noise import Noise
from odefit.problem.problem import KEPT, Problem


def with_observables(
    problem: Problem, texts: Sequence[str] | None, noise: Mapping[str, Any] | None = None
) -> tuple[Problem, tuple[str, ...]]:
    """Return a problem with some observables, and their names.

    Parameters
    ----------
    problem
        The problem.
    texts
        Names of observables or of states, or new ones such as ``"total = x1 + x2"``; None for the
        observables of the problem, without states that nobody measures or gives a noise.
    noise
        Noise of observables, in place of that of the problem: a standard deviation, a mapping of
        the fields of :class:`odefit.Noise`, or such an object.

    Raises
    ------
    InputError
        A name is unknown, an expression cannot be read, or the noise is unknown.
    """
    model = problem.given
    if texts is None:
        texts = _usual(problem, noise or {})
    added: dict[str, Expression] = {}
    names: list[str] = []
    for text in texts:
        name, separator, formula = (part.strip() for part in text.partition("="))
        names.append(name)
        if separator:
            if name in model.observables:
                raise InputError(
                    f"observable '{text}': there is an observable '{name}' already; give the new "
                    "one another name, or leave out its expression"
                )
            try:
                added[name] = parse(formula)
            except ExpressionError as error:
                raise InputError(f"observable '{text}': {error}") from error
        elif name not in model.observables:
            known = [*model.observables, *model.states]
            if name not in model.states:
                raise InputError(
                    f"observable '{name}': there is no observable or state of this name"
                    f"{did_you_mean(name, known)}; a new one is an expression, such as "
                    f'"{name} = x1 + x2"'
                )
            added[name] = parse(name)
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(f"observable '{twice[0]}': given twice")
    noise_given = {name: _noise(name, value) for name, value in (noise or {}).items()}
    for name in noise_given:
        if name not in names:
            raise InputError(f"noise {name}: it is not among the observables to be measured")
    if added or noise_given:
        other = copy(model)
        observables = MappingProxyType({**model.observables, **added})
        object.__setattr__(other, "observables", observables)
        arguments: dict[str, Any] = {name: getattr(problem, name) for name in KEPT}
        arguments["noise"] = {**problem.noise, **noise_given}
        problem = Problem(other, **arguments)
    _check_noise(problem, names)
    return problem, tuple(names)


def _usual(problem: Problem, noise: Mapping[str, Any]) -> list[str]:
    """Return the observables without the states that are observed only by default."""
    model = problem.given
    known = {name for name, one in problem.noise.items() if one.known or one.spread} | noise.keys()
    measured = {name for condition in problem.conditions for name in condition.series}
    named = [
        name
        for name, formula in model.observables.items()
        if name not in model.states or formula.text != name or name in known | measured
    ]
    return named or list(model.observables)


def _noise(name: str, value: Any) -> Any:
    if isinstance(value, Noise | Mapping):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InputError(
            f"noise {name}: expected a positive standard deviation or a mapping such as "
            f'{{"relative": 0.1}}, got {value!r}'
        )
    return {"sd": float(value)}


def _check_noise(problem: Problem, names: Sequence[str]) -> None:
    """Refuse observables with unknown noise if that of others is known."""
    columns = {n for c in problem.conditions for n, s in c.series.items() if s.sds_given}
    unknowns = {u.key for u in problem.unknowns if u.kind == "noise"}
    noises = {name: problem.noise.get(name, Noise()) for name in names}
    weighted = [n for n in names if noises[n].known or n in columns]
    others = any(n.known for n in problem.noise.values()) or columns
    for name, noise in noises.items():
        if noise.correlation is not None:
            raise InputError(
                f"noise {name}: it is correlated in time, so the information of measurements does "
                "not add up; give independent noise, such as --sd NAME=VALUE"
            )
        estimated = noise.spread == "estimate" and name not in columns
        if estimated and noise.unknown(name) not in unknowns:
            raise InputError(
                f"noise {name}: it is to be estimated, and {name} was never measured; give its "
                f"standard deviation for the design, such as --sd {name}=0.1"
            )
        if (weighted or others) and name not in weighted:
            raise InputError(
                f"noise {name}: it is not given, while that of other observables is; give "
                f"its standard deviation, such as --sd {name}=0.1"
            )

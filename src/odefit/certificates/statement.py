"""A problem written out in plain formulas, so that a certificate states what it proves.

Every condition becomes segments of time. Parameters, constants, inputs and functions of the user
are written out, so that formulas contain only unknowns, states, the time t and numbers.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from odefit.certificates.likelihoods import factor_of, law_of, prior_term
from odefit.common.errors import InputError
from odefit.expressions.expressions import NON_SMOOTH, TIME, Expression
from odefit.expressions.grammar import NAME_PATTERN, RESERVED, named
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed
from odefit.problem.problem import Problem
from odefit.problem.variants.features import refuse_integrated_features
from odefit.simulation.residuals.noise import known_spreads

NAMES = re.compile(r"[A-Za-z_]\w*")
"""Names in a formula."""

MAX_FORMULA = 100_000
"""Largest number of characters of a formula; repeated parts are written out each time."""


def statement_of(problem: Problem) -> dict[str, Any]:
    """Return the objective of a problem in continuous time, written out, as a JSON value.

    Raises InputError for problems without such a form: algebraic equations, functions with a kink,
    spreads that depend on states.
    """
    refuse_integrated_features(problem, "a certificate")
    if problem.model.algebraic:
        raise InputError(
            "a certificate cannot be written for a problem with algebraic equations; put their "
            "solution into the differential equations"
        )
    symbols = _symbols(problem)
    unknowns = [
        {"symbol": symbol, "name": key, "lower": float(low), "upper": float(high)}
        for symbol, key, low, high in zip(
            symbols, problem.keys, problem.lower, problem.upper, strict=True
        )
    ]
    written = [_Written(problem, condition, symbols) for condition in problem.conditions]
    statement = {
        "unknowns": unknowns,
        "states": list(problem.model.states),
        "conditions": [one.condition() for one in written],
        "priors": _priors(problem, symbols),
    }
    terms = [*_prior_terms(problem, symbols), *(f for one in written for f in one.factors())]
    return statement | ({"terms": terms} if terms else {})


def fingerprint_of(statement: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a statement or another JSON value, whatever its layout in a file."""
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def without_bounds(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Return a statement without the bounds of its unknowns, which a method may replace."""
    unknowns = [{k: u[k] for k in ("symbol", "name")} for u in statement["unknowns"]]
    return {**statement, "unknowns": unknowns}


def _symbols(problem: Problem) -> list[str]:
    """Return a name for each unknown that is not used for anything else."""
    taken = {TIME, *problem.model.states, *RESERVED}
    symbols: list[str] = []
    for number, key in enumerate(problem.keys):
        usable = NAME_PATTERN.match(key) and key not in taken and key not in symbols
        symbol = key if usable else f"unknown_{number + 1}"
        while symbol in taken or symbol in symbols:
            symbol += "_"
        symbols.append(symbol)
    return symbols


def _priors(problem: Problem, symbols: Sequence[str]) -> list[dict[str, Any]]:
    """Return the normal priors, each a term ((unknown - mean)/sd)^2 of the objective."""
    priors = []
    for key, prior in problem.priors.items():
        if not prior.plain or prior.mean is None or prior.sd is None:
            continue
        symbol = symbols[problem.keys.index(key)]
        priors.append({"unknown": symbol, "mean": float(prior.mean), "sd": float(prior.sd)})
    return priors


def _prior_terms(problem: Problem, symbols: Sequence[str]) -> list[str]:
    """Return the formulas of other priors, which the objective adds."""
    others = {key: prior for key, prior in problem.priors.items() if not prior.plain}
    texts = [prior_term(key, p, symbols[problem.keys.index(key)]) for key, p in others.items()]
    return [text for text in texts if text is not None]


class _Text:
    """A formula as a text, which arithmetic makes longer."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_FORMULA:
            raise InputError(
                f"a certificate cannot be written: a formula has more than {MAX_FORMULA} "
                "characters when it is written out in full"
            )
        self.text = text

    def __neg__(self) -> _Text:
        return _Text(f"(-{self.text})")

    def __add__(self, other: _Text) -> _Text:
        return _Text(f"({self.text} + {other.text})")

    def __sub__(self, other: _Text) -> _Text:
        return _Text(f"({self.text} - {other.text})")

    def __mul__(self, other: _Text) -> _Text:
        return _Text(f"({self.text}*{other.text})")

    def __truediv__(self, other: _Text) -> _Text:
        return _Text(f"({self.text}/{other.text})")


class _Writing:
    """The algebra of texts."""

    def number(self, text: str) -> _Text:
        """Return a number; negative numbers are in parentheses."""
        return _Text(f"({text})" if text.startswith("-") else text)

    def power(self, base: _Text, exponent: _Text) -> _Text:
        """Return a power, with its parts in parentheses unless they are plain numbers."""
        return _Text(f"({base.text}^{exponent.text})")

    def call(self, function: str, arguments: Sequence[_Text]) -> _Text:
        """Return a call; raises InputError for functions with a kink."""
        if function in NON_SMOOTH:
            raise InputError(f"a certificate cannot have {named(function)!r}, which has a kink")
        return _Text(f"{function}({', '.join(a.text for a in arguments)})")


WRITING = _Writing()


class _Written:
    """One condition while it is written out."""

    def __init__(self, problem: Problem, condition: Condition, symbols: Sequence[str]) -> None:
        self._problem, self._condition = problem, condition
        self._unknowns = [_Text(symbol) for symbol in symbols]
        self._scalars: dict[str, _Text] = {
            name: bound_value(bound, condition.scalars, self._unknowns, WRITING)
            for name, bound in condition.scalars.items()
        }
        self._states = {name: _Text(name) for name in problem.model.states}

    def condition(self) -> dict[str, Any]:
        """Return the condition as a JSON value: initial values, segments, measurements."""
        condition = self._condition
        initial = {
            name: bound_value(
                condition.initial[name], condition.scalars, self._unknowns, WRITING
            ).text
            for name in self._problem.model.states
        }
        last = float(condition.times[-1])
        begins = {condition.t0} | {time for time, _ in condition.events}
        begins |= {float(t) for i in condition.inputs.values() for t in i.times}
        measured = sorted(self._measurements(), key=lambda m: float(m["time"]))
        segments = []
        for begin in sorted(t for t in begins if condition.t0 <= t <= last):
            # A measurement at the time of an event observes the states before it.
            self._observe([m for m in measured if m["time"] <= begin], begin)
            assigned = [
                self._assign(assign, begin) for time, assign in condition.events if time == begin
            ]
            ode = self._ode(begin)
            segments.append({"begin": begin, "set": [a for a in assigned if a], "ode": ode})
        self._observe(measured, math.inf)
        return {"name": condition.name, "initial": initial, "segments": segments, "data": measured}

    def _measurements(self) -> list[dict[str, Any]]:
        """Return measured values with the names of their observables, without formulas so far."""
        condition, entries = self._condition, []
        for name, series in condition.series.items():
            noise = self._problem.noise.get(name, Noise())
            values = transformed(series.values, noise.transform)
            known = known_spreads(noise, series)
            for k, row in enumerate(series.rows):
                entry = {"time": float(condition.times[row]), "observable": name}
                spread = self._spread(name, noise) if known is None else float(known[k])
                censored = 0 if series.censored is None else int(series.censored[k])
                entry |= {"value": float(values[k])} | law_of(noise, censored, spread)
                entries.append(entry)
        return entries

    def _spread(self, name: str, noise: Noise) -> str:
        """Return the formula of a spread that is not a number."""
        if not isinstance(noise.spread, Expression):
            return self._unknowns[self._problem.keys.index(noise.unknown(name))].text
        if noise.spread.names - self._scalars.keys():
            raise InputError(
                f"noise.{name}.{noise.law.spread_field}: a certificate cannot have a spread that "
                "depends on predictions; leave out the certificate, as the proof itself can"
            )
        if any(self._scalars.keys() & assign.keys() for _, assign in self._condition.events):
            raise InputError(
                f"noise.{name}: a certificate cannot have a spread of constants beside events that "
                "set constants"
            )
        text: _Text = noise.spread.evaluate(self._scalars, WRITING)
        return text.text

    def factors(self) -> Iterator[str]:
        """Yield the formulas that spreads add to the objective if they depend on unknowns."""
        symbols = {unknown.text for unknown in self._unknowns}
        for name, series in self._condition.series.items():
            noise = self._problem.noise.get(name, Noise())
            if known_spreads(noise, series) is not None:
                continue
            spread = self._spread(name, noise)
            measured = np.ones(len(series.values), bool)
            if series.censored is not None:
                measured = series.censored == 0
            if symbols & set(NAMES.findall(spread)) and measured.any():
                yield factor_of(noise, series.values[measured].tolist(), spread)

    def _observe(self, measured: Sequence[dict[str, Any]], until: float) -> None:
        """Add the formulas of observables, with the present scalars."""
        for entry in measured:
            if "formula" not in entry:
                known = self._known(entry["time"]) | self._inputs_at(entry["time"])
                name = entry["observable"]
                text = self._problem.model.observables[name].evaluate(known, WRITING).text
                transform = self._problem.noise.get(name, Noise()).transform
                entry["formula"] = text if transform is None else f"{transform}({text})"

    def _ode(self, begin: float) -> dict[str, str]:
        """Return the right-hand sides from `begin` to the next segment."""
        known = self._known(None) | self._inputs_from(begin)
        rates = self._problem.model.rhs(known, WRITING)
        return {n: r.text for n, r in zip(self._states, rates, strict=True)}

    def _assign(self, assign: Mapping[str, Any], time: float) -> dict[str, str]:
        """Return the new values of states after an event, and let it set scalars."""
        known = self._known(time) | self._inputs_at(time)
        new = {name: e.evaluate(known, WRITING) for name, e in assign.items()}
        for name in self._scalars.keys() & new.keys():
            if assign[name].names & self._states.keys():
                raise InputError(
                    f"a certificate cannot have the event at t = {time:g}, which sets {name} to "
                    "what depends on states; make it a state whose derivative is zero"
                )
            self._scalars[name] = new[name]
        return {name: text.text for name, text in new.items() if name in self._states}

    def _known(self, time: float | None) -> dict[str, _Text]:
        """Return all names but inputs, with a number for the time if there is one."""
        now = _Text(TIME) if time is None else WRITING.number(repr(time))
        return {**self._scalars, **self._states, TIME: now}

    def _inputs_from(self, time: float) -> dict[str, _Text]:
        """Return the inputs as polynomials in t that are valid up to their next knots."""
        polynomials = {}
        for name in self._condition.inputs:
            c, left = self._piece(name, time)
            since = _Text(TIME) - WRITING.number(repr(left))
            total = WRITING.number(repr(c[-1]))
            for a in c[-2::-1]:
                total = WRITING.number(repr(a)) + since * total
            polynomials[name] = total
        return polynomials

    def _inputs_at(self, time: float) -> dict[str, _Text]:
        """Return the inputs at one time, as fractions of integers."""
        fractions = {}
        for name in self._condition.inputs:
            c, left = self._piece(name, time)
            since = Fraction(time) - Fraction(left)
            value = sum((Fraction(a) * since**k for k, a in enumerate(c)), Fraction(0))
            fractions[name] = _Text(f"(({value.numerator})/{value.denominator})")
        return fractions

    def _piece(self, name: str, time: float) -> tuple[list[float], float]:
        """Return the coefficients of an input after `time`, lowest power first, and the origin."""
        signal = self._condition.inputs[name]
        piece = int(np.searchsorted(signal.times, time, side="right"))
        c = [float(a) for a in signal.polynomials()[piece]]
        if not all(map(math.isfinite, c)):
            raise InputError(f"a certificate cannot have input {name}, too steep at t = {time:g}")
        while len(c) > 1 and c[-1] == 0.0:
            c.pop()
        return c, float(signal.times[max(piece - 1, 0)])

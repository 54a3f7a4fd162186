"""Observables and measurements of PEtab as observables, noise and data of format 1.

A measurement of PEtab can replace names in the formulas of its observable. If all measurements use
the same replacement, it is written into the formulas. If it differs between experiments, the name
becomes a constant of these; if it differs within one, the observable becomes several. Numbers that
replace the whole noise become a column of standard deviations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from odefit.common.errors import shown
from odefit.formats.petab.description import Description, Measurement, ObservableRow
from odefit.formats.petab.experiments import plain_name
from odefit.formats.petab.names import PetabNames, names_in, number_in
from odefit.formats.petab.tables import as_number
from odefit.problem.inputs.issues import Issues
from odefit.problem.sbml import substituted

Override = tuple[tuple[str, ...], tuple[str, ...]]
"""Replacements of the placeholders of an observable, and of those of its noise."""


class ObservedRow(NamedTuple):
    """A measurement."""

    # the names of its experiment and of its observable in format 1
    experiment: str
    observable: str
    measurement: Measurement
    sd: float | None  # its standard deviation, if the data give it


@dataclass
class Observed:
    """Observables, noise and data of format 1."""

    # the sections
    observables: dict[str, str] = field(default_factory=dict)
    noise: dict[str, dict[str, Any]] = field(default_factory=dict)
    # constants that an observable needs, by experiment
    constants: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: list[ObservedRow] = field(default_factory=list)  # the measurements
    notes: list[str] = field(default_factory=list)  # sentences on how parts were translated


class Observables:
    """The translation of observables and measurements."""

    def __init__(self, description: Description, names: PetabNames, issues: Issues) -> None:
        self._description = description
        self._names = names
        self._issues = issues
        self._ids = {names.of(o.name) for o in description.observables}
        self._experiments = [plain_name(e.name) for e in description.experiments]
        placeholders = [p for o in description.observables for p in _placeholders(o)]
        self._shared = {p for p in placeholders if placeholders.count(p) > 1}
        self._taken = {*names.known, *self._ids}
        self.translated = Observed(constants={e: {} for e in self._experiments})

    def __call__(self) -> Observed:
        """Return observables, noise and data."""
        by_observable: dict[str, list[Measurement]] = {}
        for measurement in self._description.measurements:
            by_observable.setdefault(measurement.observable, []).append(measurement)
        for row in self._description.observables:
            measured = [m for m in by_observable.get(row.name, ()) if self._fits(m, row)]
            if measured:
                self._observable(row, measured)
            elif not row.placeholders:
                formula = self._names.expression(row.formula, row.place)
                self.translated.observables[self._names.of(row.name)] = formula
            else:
                self.translated.notes.append(
                    f"The observable {row.name} is left out, as there are no measurements to "
                    "replace the placeholders in its formula."
                )
        return self.translated

    def _fits(self, measurement: Measurement, row: ObservableRow) -> bool:
        """Return whether a measurement has as many replacements as placeholders."""
        known = self._names.known
        fits = True
        for column, placeholders, values in (
            ("observableParameters", row.placeholders, measurement.parameters),
            ("noiseParameters", row.noise_placeholders, measurement.noise_parameters),
        ):
            if len(placeholders) != len(values):
                fits = False
                self._issues.error(
                    measurement.place,
                    f"{column}: {row.name} has {len(placeholders)} placeholders "
                    f"({', '.join(placeholders) or 'none'}), got {len(values)} values",
                )
            for value in values:
                number = as_number(value)
                if number is None and self._names.of(value) not in known:
                    fits = False
                    self._issues.error(
                        measurement.place,
                        f"{column}: {shown(value)} is neither a number nor a parameter",
                    )
        return fits

    def _observable(self, row: ObservableRow, measured: Sequence[Measurement]) -> None:
        name = self._names.of(row.name)
        placeholders = _placeholders(row)
        formula = self._names.expression(row.formula, row.place, row.placeholders)
        noise = self._names.expression(
            row.noise, row.place, {*row.noise_placeholders, *row.placeholders, *self._ids}
        )
        noise = self._with_other_observables(noise, name, row)
        sds = _numeric_noise(noise, row, measured)
        overrides = [
            (m.parameters, () if sds is not None else m.noise_parameters) for m in measured
        ]
        replaced = placeholders if sds is None else row.placeholders
        by_experiment: dict[str, set[Override]] = {}
        for m, override in zip(measured, overrides, strict=True):
            by_experiment.setdefault(plain_name(m.experiment), set()).add(override)
        if all(len(of_experiment) == 1 for of_experiment in by_experiment.values()):
            single = {e: next(iter(of_experiment)) for e, of_experiment in by_experiment.items()}
            inside = self._constants_of_experiments(name, replaced, single)
            texts = substituted(formula, inside), substituted(noise, inside)
            self._add(name, row, *texts, sds is not None)
            self._measure(name, measured, sds)
            return
        parts = {override: f"{name}_{i}" for i, override in enumerate(dict.fromkeys(overrides), 1)}
        self.translated.notes.append(
            f"The observable {row.name} becomes {len(parts)} ({parts[overrides[0]]} and so on), as "
            "its measurements replace its placeholders by different values within an experiment."
        )
        for override, part in parts.items():
            if part in self._taken:
                self._issues.error(row.place, f"the name '{part}', which is needed, is taken")
            inside = self._texts(replaced, override)
            itself = {name: part} if name in names_in(noise) else {}
            texts = substituted(formula, inside), substituted(noise, {**inside, **itself})
            self._add(part, row, *texts, sds is not None)
        for i, (m, override) in enumerate(zip(measured, overrides, strict=True)):
            self._measure(parts[override], [m], None if sds is None else [sds[i]])

    def _with_other_observables(self, noise: str, name: str, row: ObservableRow) -> str:
        """Return a noise formula with other observables written out."""
        others = (names_in(noise) & self._ids) - {name}
        formulas = {}
        for other in self._description.observables:
            if self._names.of(other.name) in others:
                formulas[self._names.of(other.name)] = self._names.expression(
                    other.formula, other.place, other.placeholders
                )
                if other.placeholders:
                    self._issues.error(
                        row.place,
                        f"the noise refers to {other.name}, whose placeholders have no values here",
                    )
        return substituted(noise, formulas) if formulas else noise

    def _texts(self, placeholders: Sequence[str], override: Override) -> dict[str, str]:
        values = (*override[0], *override[1])
        rules = self._names.model.assigned
        numbers = [as_number(value) for value in values]
        texts = [
            self._names.of(value) if number is None else repr(number)
            for value, number in zip(values, numbers, strict=True)
        ]
        return {p: substituted(t, rules) for p, t in zip(placeholders, texts, strict=True)}

    def _constants_of_experiments(
        self, observable: str, placeholders: Sequence[str], replacements: Mapping[str, Override]
    ) -> dict[str, str]:
        """Return and store the replacements of placeholders that are constants of experiments."""
        texts = {e: self._texts(placeholders, override) for e, override in replacements.items()}
        usual = next(iter(texts.values()))
        inside = {}
        for placeholder in placeholders:
            if len({by_placeholder[placeholder] for by_placeholder in texts.values()}) == 1:
                inside[placeholder] = usual[placeholder]
                continue
            clash = placeholder in self._shared or placeholder in self._taken
            constant = f"{placeholder}_{observable}" if clash else placeholder
            inside[placeholder] = constant
            for experiment in self._experiments:
                text = texts.get(experiment, usual)[placeholder]
                number = number_in(text)
                self.translated.constants[experiment][constant] = text if number is None else number
        return inside

    def _add(
        self, name: str, row: ObservableRow, formula: str, noise: str, sds_in_data: bool
    ) -> None:
        self.translated.observables[name] = formula
        table: dict[str, Any] = {}
        if row.distribution != "normal":
            table["distribution"] = row.distribution
            noise = f"{row.sd_over_scale!r}*({noise})"
        if row.transform is not None:
            table["transform"] = row.transform
        if not sds_in_data:
            number = number_in(noise)
            table["sd"] = noise if number is None else number
        if table:
            self.translated.noise[name] = table

    def _measure(
        self, name: str, measured: Sequence[Measurement], sds: Sequence[float] | None
    ) -> None:
        for i, m in enumerate(measured):
            sd = None if sds is None else sds[i]
            self.translated.rows.append(ObservedRow(plain_name(m.experiment), name, m, sd))


def _placeholders(row: ObservableRow) -> tuple[str, ...]:
    return (*row.placeholders, *row.noise_placeholders)


def _numeric_noise(
    noise: str, row: ObservableRow, measured: Sequence[Measurement]
) -> list[float] | None:
    """Return the noise of each measurement, if the measurements give all of it as numbers."""
    placeholders = set(row.noise_placeholders)
    if not placeholders or not names_in(noise) <= placeholders:
        return None
    sds = []
    for m in measured:
        inside = dict(zip(row.noise_placeholders, m.noise_parameters, strict=True))
        if any(as_number(value) is None for value in inside.values()):
            return None
        number = number_in(substituted(noise, inside))
        if number is None:
            return None
        sds.append(row.sd_over_scale * number)
    return sds

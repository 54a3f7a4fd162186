"""The session of a page: one problem, one set of values, one fit at a time."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.explorer.fit_job import FitJob
from odefit.explorer.guess_writing import Proposal, carry_out, propose, with_guesses
from odefit.explorer.live_curves import LiveModel
from odefit.explorer.page_data import (
    PARTS,
    Json,
    curves_data,
    failure_data,
    numbers,
    plane_data,
    problem_data,
    report_data,
    result_data,
    sensitivities_data,
)
from odefit.explorer.phase_plane import phase_plane, why_no_field
from odefit.explorer.result_figures import figure_svg
from odefit.explorer.scenarios import with_scenario
from odefit.explorer.sensitivity_curves import sensitivity_curves
from odefit.explorer.sliders import first_values, misplaced, sliders
from odefit.formats.files import save
from odefit.methods.registry import METHODS
from odefit.problem.problem import Problem
from odefit.result.result import Result
from odefit.simulation import Failure
from odefit.simulation.other_integrations import able_to_integrate


class Session:
    """The state behind a page: problem, values, and perhaps a result to compare with.

    It may be used from several threads: integrations run one at a time. Guesses can be written to
    `file`; copies are saved in `folder`.
    """

    def __init__(
        self,
        problem: Problem,
        result: Result | None = None,
        file: Path | None = None,
        folder: Path | None = None,
    ) -> None:
        if not problem.unknowns:
            raise InputError("there is nothing to explore: the problem has no unknowns")
        self.problem = problem
        self.result = result if result is not None and result.solutions else None
        self.file = file
        self._folder = folder or Path()
        self._guesses = first_values(problem)
        start = self._guesses if self.result is None else self._of_result(self.result)
        self._sliders = sliders(problem, start)
        self.values = dict(zip(problem.keys, start.tolist(), strict=True))
        self._lock = threading.Lock()
        self._drawing = threading.Lock()
        self._model = LiveModel(problem)
        self._result_model: LiveModel | None = None
        self._scenario: tuple[dict[str, dict[str, float]], LiveModel] | None = None
        self._job = FitJob()
        self._held: dict[str, float] = {}
        self._proposal: Proposal | None = None

    def _of_result(self, result: Result) -> Array:
        """Return the values of a result, and guesses of unknowns missing there."""
        best = result.best
        known = {**best.initial, **best.parameters}
        known |= dict(zip(result.problem.keys, best.vector.tolist(), strict=True))
        guesses = zip(self.problem.keys, self._guesses, strict=True)
        vector = np.array([known.get(key, guess) for key, guess in guesses], dtype=float)
        return np.asarray(np.clip(vector, self.problem.lower, self.problem.upper))

    def description(self) -> Json:
        """Return the data that the page needs before drawing."""
        answer = problem_data(self.problem, self._sliders, self._model)
        answer["values"] = numbers(self.values.values())
        answer["guesses"] = numbers(self._guesses)
        answer["result"] = None
        if self.result is not None:
            answer["result"] = result_data(self.result, "saved result")
            answer["result"]["vector"] = numbers(self._of_result(self.result))
        answer["file"] = None if self.file is None else self.file.name
        answer["folder"] = str(self._folder.resolve())
        answer["methods"] = list(METHODS)
        condition = self.problem.conditions[0]
        answer["no_field"] = why_no_field(self._model.forward.field, condition)
        return answer

    def warm(self) -> None:
        """Compile the model, so that the first request is answered soon."""
        vector = np.array(list(self.values.values()))
        with self._lock:
            self._model.curves(vector, [c.name for c in self.problem.conditions], True)

    def curves(self, request: Mapping[str, Any]) -> Json:
        """Return curves at the values of the request, or the reason for a failed simulation."""
        names = self._experiments(request.get("experiments", []))
        objective = bool(request.get("objective", True))
        parts = [part for part in PARTS if part in request.get("parts", PARTS)]
        if request.get("of") == "result":
            return self._result_curves(names)
        vector = self._vector(request)
        with self._lock:
            curves = self._model.curves(vector, names, objective)
        if request.get("live", True):
            self.values = dict(zip(self.problem.keys, vector.tolist(), strict=True))
        if isinstance(curves, Failure):
            return failure_data(curves)
        return curves_data(self.problem, self._model, curves, parts)

    def _result_curves(self, names: Sequence[str]) -> Json:
        """Return the curves of the saved result, in experiments with the same names."""
        if self.result is None:
            raise InputError("there is no saved result to compare with")
        problem, best = self.result.problem, self.result.best
        with self._lock:
            if self._result_model is None:
                forward = able_to_integrate(problem, best.vector, best.nodes)
                self._result_model = LiveModel(problem, forward=forward)
            common = [c.name for c in problem.conditions if c.name in names]
            curves = self._result_model.curves(best.vector, common, False)
        if isinstance(curves, Failure):
            return failure_data(curves)
        return curves_data(problem, self._result_model, curves)

    def scenario(self, request: Mapping[str, Any]) -> Json:
        """Return curves of experiments with other constants, inputs or doses."""
        names = self._experiments(request.get("experiments", []))
        parts = [part for part in PARTS if part in request.get("parts", PARTS)]
        vector = self._vector(request)
        by_experiment = request.get("changes")
        if not isinstance(by_experiment, dict) or not all(
            isinstance(v, dict) for v in by_experiment.values()
        ):
            raise InputError("changes: expected values by experiment and name")
        self._experiments(list(by_experiment))
        changes = {
            name: {str(key): _finite(v, key) for key, v in values.items()}
            for name, values in by_experiment.items()
        }
        with self._lock:
            if self._scenario is None or self._scenario[0] != changes:
                problem = with_scenario(self.problem, changes)
                if problem.keys != self.problem.keys:
                    raise InputError("a scenario keeps the unknowns of its problem")
                self._scenario = changes, LiveModel(problem)
            model = self._scenario[1]
            curves = model.curves(vector, names, False)
        if isinstance(curves, Failure):
            return failure_data(curves)
        return curves_data(model.problem, model, curves, parts)

    def sensitivities(self, request: Mapping[str, Any]) -> Json:
        """Return the sensitivities of one experiment."""
        name = self._experiments([request.get("experiment")])[0]
        vector = self._vector(request)
        with self._lock:
            curves = sensitivity_curves(self._model, vector, name)
        if isinstance(curves, Failure):
            return failure_data(curves)
        return sensitivities_data(self.problem, self._model, name, curves)

    def plane(self, request: Mapping[str, Any]) -> Json:
        """Return the vector field of two states over a rectangle, or why it cannot be drawn."""
        condition = self.problem.condition(self._experiments([request.get("experiment")])[0])
        field = self._model.forward.field
        names = (str(request.get("x")), str(request.get("y")))
        if sorted(names) != sorted(field.states):
            return {"none": "The vector field is drawn over the two states of a model."}
        reason = why_no_field(field, condition)
        if reason:
            return {"none": reason}
        box = [_finite(v, "the box") for v in _list(request.get("box"), 4, "the box")]
        vector = self._vector(request)
        field_lines = phase_plane(field, condition, vector, names, (box[0], box[1], box[2], box[3]))
        return plane_data(field_lines)

    def figure(self, request: Mapping[str, Any]) -> Json:
        """Return a figure of the last fit, or of the saved result, as SVG."""
        result = self.last_fit or self.result
        with self._drawing:
            return {"svg": figure_svg(result, str(request.get("kind", "")))}

    def start_fit(self, request: Mapping[str, Any]) -> Json:
        """Begin a fit from the values of the request, some of which may be fixed."""
        vector = self._vector(request)
        values = dict(zip(self.problem.keys, vector.tolist(), strict=True))
        frozen = [str(key) for key in _list(request.get("frozen", []), None, "frozen")]
        for key in frozen:
            if key not in values:
                raise InputError(f"frozen: unknown name {key!r}")
        if len(set(frozen)) == len(values):
            raise InputError("all unknowns are held, so there is nothing to fit")
        method = request.get("method") or None
        if method is not None and method not in METHODS:
            raise InputError(f"unknown method {method!r}")
        limit = request.get("time_limit")
        if limit is not None:
            limit = _finite(limit, "the time limit")
            if limit <= 0:
                raise InputError("the time limit has to be positive")
        held = {key: values[key] for key in frozen}
        problem = self.problem.with_unknowns(fix=held)
        self._job.start(problem, {key: values[key] for key in problem.keys}, method, limit)
        self._held = held
        return self.fit_report()

    def stop_fit(self) -> Json:
        """Ask the fit to end with its best so far."""
        self._job.stop()
        return self.fit_report()

    def fit_report(self) -> Json:
        """Return the state of the fit."""
        return report_data(self._job.report(), self._held)

    @property
    def last_fit(self) -> Result | None:
        """The result of the last fit made from the page."""
        return self._job.report().result

    def propose_guesses(self, request: Mapping[str, Any]) -> Json:
        """Return the proposed change of the problem file."""
        if self.file is None:
            raise InputError("there is no problem file to write to; save a copy instead")
        vector = self._vector(request)
        values = dict(zip(self.problem.keys, vector.tolist(), strict=True))
        self._proposal = propose(self.file, self.problem, values)
        return {
            "difference": self._proposal.difference,
            "remarks": list(self._proposal.remarks),
            "digest": self._proposal.digest,
        }

    def write_guesses(self, request: Mapping[str, Any]) -> Json:
        """Write the last shown proposal to the problem file."""
        proposal = self._proposal
        if proposal is None or request.get("digest") != proposal.digest:
            raise InputError("ask for the difference first")
        carry_out(proposal)
        self._proposal = None
        return {"written": proposal.path.name}

    def save_copy(self, request: Mapping[str, Any]) -> Json:
        """Write the problem, with the values as guesses, to a new file in the folder."""
        name = str(request.get("name", ""))
        if Path(name).name != name or not name.endswith(".toml") or name.startswith("."):
            raise InputError("expected the name of a file such as copy.toml, without a folder")
        target = self._folder / name
        if target.exists():
            raise InputError(f"{name} exists already; choose another name")
        vector = self._vector(request)
        values = dict(zip(self.problem.keys, vector.tolist(), strict=True))
        return {"written": str(save(with_guesses(self.problem, values), target))}

    def close(self) -> None:
        """Stop all running work."""
        self._job.close()

    def _experiments(self, names: Any) -> list[str]:
        known = {c.name for c in self.problem.conditions}
        for name in _list(names, None, "experiments"):
            if name not in known:
                raise InputError(f"unknown experiment {name!r}")
        return list(names)

    def _vector(self, request: Mapping[str, Any]) -> Array:
        values = _list(request.get("values"), len(self.problem.unknowns), "values")
        vector = np.array(
            [_finite(v, k) for v, k in zip(values, self.problem.keys, strict=True)], dtype=float
        )
        wrong = misplaced(self._sliders, vector)
        if wrong:
            raise InputError(wrong)
        return vector


def _list(value: Any, count: int | None, name: str) -> list[Any]:
    if not isinstance(value, list) or (count is not None and len(value) != count):
        size = "" if count is None else f" of {count}"
        raise InputError(f"{name}: expected a list{size}")
    return value


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InputError(f"{name}: expected a number, got {value!r}")
    return float(value)

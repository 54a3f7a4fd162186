"""The data of a result, without its tables, figures and files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from odefit.assessment.criteria import Criteria
from odefit.assessment.parts import OPTIONAL, Assessment, Uncertainty
from odefit.assessment.profiles import ProfilesData
from odefit.common.arrays import Array
from odefit.methods.estimate import Route, Start, Status
from odefit.methods.fit_measure import OBJECTIVE, FitMeasure, likelihood_name, prior_squares
from odefit.methods.fit_quality.goodness_verdict import Goodness
from odefit.methods.outliers import Outlier
from odefit.problem.binding import Binding
from odefit.problem.parameters import Parameter
from odefit.problem.problem import Problem
from odefit.result_data.names_elsewhere import NAMES_HERE
from odefit.result_data.notices import Notice, NoticeKind
from odefit.simulation.nodes import Nodes

MAX_VALUES = 12
"""Number of values of a solution that its line shows."""


@dataclass(frozen=True, eq=False)
class Solution:
    """One distinct solution.

    Attributes
    ----------
    vector
        The unknowns in the order of ``problem.unknowns``, shape (n,).
    parameters, initial
        The values of all parameters and initial values by key, the fixed and known ones too.
    objective
        The weighted sum of squared residuals.
    log_likelihood
        The logarithm of the likelihood, where the noise is given or estimated.
    hits
        The number of starts that ended here; 0 for a solution that follows from the equations.
    nodes
        The points at which its trajectories restart, if no single integration can follow them, or
        if it satisfies conditions besides the data.
    deviance
        The deviance from the best solution, where several solutions fit and this is one of them,
        that is, within the limit of the likelihood ratio; else None.
    weight
        Its share of the posterior probability of these, by Laplace's approximation.
    intervals
        The linear confidence interval of each unknown at this solution, NaN where it is missing.
    """

    vector: Array
    parameters: Mapping[str, float]
    initial: Mapping[str, float]
    objective: float
    log_likelihood: float | None = None
    hits: int = 1
    nodes: Nodes | None = None
    deviance: float | None = field(default=None, metadata=OPTIONAL)
    weight: float | None = field(default=None, metadata=OPTIONAL)
    intervals: tuple[tuple[float, float], ...] = field(default=(), metadata=OPTIONAL)

    def __repr__(self) -> str:
        return f"Solution({self.line})"

    @property
    def line(self) -> str:
        """The solution on one line: how well it fits, how often it was found, and its values."""
        if self.log_likelihood is None:
            fits = f"objective {self.objective:.6g}"
        else:
            fits = f"log-likelihood {self.log_likelihood:.6g}"
        origin = "from the equations"
        if self.hits:
            origin = f"{self.hits} start{'s' * (self.hits != 1)}"
        values = [f"{key} = {value:.5g}" for key, value in self.parameters.items()]
        values += [f"{key} = {value:.5g} initially" for key, value in self.initial.items()]
        more = len(values) - MAX_VALUES
        shown = ", ".join(values[:MAX_VALUES]) + (f" and {more} more" if more > 0 else "")
        return f"{fits}, {origin}: {shown or 'nothing to estimate'}"


class Solutions(tuple[Solution, ...]):
    """The distinct solutions of a fit, the best first: a tuple that is shown as one line each."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self:
            return "no solutions"
        width = len(str(len(self) - 1))
        return "\n".join(f"[{i:>{width}}] {solution.line}" for i, solution in enumerate(self))


@dataclass(frozen=True)
class StageFailure:
    """A stage after the search that failed because of a mistake in odefit.

    Its part of the result is missing; the estimates do not depend on it. ``error`` is the kind of
    the exception, such as ``"ZeroDivisionError"``, and ``reason`` its text.
    """

    stage: str
    error: str
    reason: str


@dataclass(frozen=True, eq=False)
class ResultData:
    """The data of a :class:`odefit.Result`.

    Attributes
    ----------
    problem
        The problem that was fitted.
    method
        The name of the method.
    status, message
        How the fit ended, as an enumeration and in words.
    solutions
        Every distinct solution found, the best first; any sequence of solutions may be given.
    starts
        The end of each start.
    assessment
        The findings on the answer, and the proofs about it.
    uncertainty
        The uncertainty of the unknowns; None if nothing was found.
    warnings
        Sentences on anything that the user should know.
    notices
        The facts that the warnings put into words, a :class:`odefit.result_data.notices.Notice`
        each and in the same order, for programs that look for one of a kind.
    reasons
        In the same way, facts beside ``status`` that ``message`` puts into words.
    seconds
        The wall time.
    seed
        The seed with which the fit can be repeated.
    versions
        The versions of odefit and of the packages on which the numbers depend.
    routes
        The attempts of each method, if the fit combines several.
    outliers
        Values that a fit with a loss has given little weight, or that keep noise from explaining
        the residuals of a fit without one.
    profiles
        Profile likelihoods, where they were made and kept with the result.
    goodness
        The tests whether the residuals look like noise; None if nothing could be tested.
    failed_stages
        The stages after the search that failed, so that their part of the result is missing.
    """

    problem: Problem
    method: str
    status: Status
    message: str
    solutions: Sequence[Solution]
    starts: Sequence[Start]
    assessment: Assessment
    uncertainty: Uncertainty | None
    warnings: Sequence[str]
    seconds: float
    seed: int
    versions: Mapping[str, str]
    routes: Sequence[Route] = field(default=(), metadata=OPTIONAL)
    outliers: Sequence[Outlier] = field(default=(), metadata=OPTIONAL)
    profiles: ProfilesData | None = field(default=None, metadata=OPTIONAL)
    goodness: Goodness | None = field(default=None, metadata=OPTIONAL)
    failed_stages: Sequence[StageFailure] = field(default=(), metadata=OPTIONAL)
    notices: Sequence[Notice] = field(default=(), metadata=OPTIONAL)
    reasons: Sequence[Notice] = field(default=(), metadata=OPTIONAL)

    def __post_init__(self) -> None:
        object.__setattr__(self, "solutions", Solutions(self.solutions))
        if len(self.notices) != len(self.warnings):
            other = Notice(NoticeKind.OTHER)
            object.__setattr__(self, "notices", (other,) * len(self.warnings))

    def __getattr__(self, name: str) -> Any:
        """Refuse an unknown attribute, and name the one with its meaning here."""
        if name in NAMES_HERE:
            raise AttributeError(f"a result has no {name!r}; there is {NAMES_HERE[name]}")
        return object.__getattribute__(self, name)  # raises the usual error

    @property
    def ambiguous(self) -> bool:
        """True if other solutions fit as well as the best."""
        several = (NoticeKind.EQUAL_SOLUTIONS, NoticeKind.NEAR_SOLUTIONS)
        return any(notice.kind in several for notice in self.notices)

    @property
    def best(self) -> Solution:
        """The best solution.

        Raises
        ------
        ValueError
            No solution was found.
        """
        if not self.solutions:
            raise ValueError(f"no solution was found: {self.message}")
        return self.solutions[0]

    @property
    def fitting(self) -> tuple[Solution, ...]:
        """The solutions that fit the data within their noise, the best first.

        There are others beside the best where :attr:`ambiguous` is true.
        """
        return tuple(s for s in self.solutions if s.deviance is not None) or tuple(
            self.solutions[:1]
        )

    @property
    def _other_vectors(self) -> list[Array]:
        """The unknowns of the other solutions that fit and need one integration each."""
        return [s.vector for s in self.fitting[1:] if s.nodes is None]

    @property
    def objective(self) -> float:
        """The weighted sum of squared residuals of the best solution; NaN if none was found."""
        return self.solutions[0].objective if self.solutions else math.nan

    @property
    def log_likelihood(self) -> float | None:
        """The log-likelihood of the best solution, where the noise is given or estimated."""
        return self.solutions[0].log_likelihood if self.solutions else None

    @property
    def criteria(self) -> Criteria:
        """Information criteria of the best solution; unknowns at bounds do not count.

        Raises
        ------
        ValueError
            No solution was found.
        """
        best, uncertainty = self.best, self.uncertainty
        count = len(self.problem.unknowns) if uncertainty is None else uncertainty.rank
        if best.log_likelihood is None:
            return Criteria.of_squares(best.objective, count, self.problem.size)
        return Criteria(-2.0 * best.log_likelihood, count, self.problem.size)

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return self.criteria.aic

    @property
    def aicc(self) -> float:
        """Akaike's information criterion for small samples."""
        return self.criteria.aicc

    @property
    def bic(self) -> float:
        """Schwarz's (Bayesian) information criterion."""
        return self.criteria.bic

    @property
    def success(self) -> bool:
        """True if the fit converged: ``status`` is ``Status.CONVERGED``."""
        return self.status is Status.CONVERGED

    @property
    def x(self) -> Array:
        """The unknowns of the best solution, shape (n,), in the order of :attr:`var_names`."""
        return self.best.vector

    @property
    def var_names(self) -> tuple[str, ...]:
        """The names of the unknowns."""
        return self.problem.keys

    @property
    def nfev(self) -> int:
        """The number of evaluations of the residuals, of all starts together."""
        return sum(start.evaluations for start in self.starts)

    @property
    def ndata(self) -> int:
        """The number of measured values."""
        return self.problem.size

    @property
    def nvarys(self) -> int:
        """The number of unknowns."""
        return len(self.problem.keys)

    @property
    def nfree(self) -> int:
        """The degrees of freedom, ``ndata - nvarys``."""
        return self.ndata - self.nvarys

    @property
    def chisqr(self) -> float | None:
        """The sum of squares of the weighted residuals of the measurements.

        It is the objective without the part of priors. None if no solution was found, or if a
        parameter of the noise is estimated, since the sum then carries no information.
        """
        estimated = any(unknown.kind == "noise" for unknown in self.problem.unknowns)
        if not self.solutions or estimated:
            return None
        return self.objective - prior_squares(self.problem, self.best.vector)

    @property
    def redchi(self) -> float | None:
        """The reduced chi-square, ``chisqr / nfree``.

        None if the standard deviations of the noise are not given: without a unit of the residuals,
        it does not measure the fit. Their variance is then ``uncertainty.variance``. Also None if
        ``chisqr`` is None or ``nfree`` is not positive.
        """
        chisqr = self.chisqr
        if chisqr is None or self.log_likelihood is None or self.nfree <= 0:
            return None
        return chisqr / self.nfree

    @property
    def covar(self) -> Array | None:
        """The covariance of the unknowns, shape (n, n), in the order of :attr:`var_names`.

        NaN in rows of unknowns without a standard error; None if it was not computed.
        """
        return None if self.uncertainty is None else self.uncertainty.covariance

    @property
    def measure(self) -> str:
        """The name of the measure that :meth:`value_of` returns: "-2 log L" or "objective"."""
        if self.log_likelihood is None:
            return OBJECTIVE
        return likelihood_name(self.problem)

    def value_of(self, end: Solution | Start | Route) -> float:
        """Return the measure of a solution, a start or a route of this result.

        It is -2 log L if the noise is given or estimated. Each prior adds -2 times the logarithm of
        its density relative to the largest (a square for a normal prior). Otherwise it is the
        objective, a sum of squares. It is infinite for a start that failed. A route that has found
        the best solution has its value: searches integrate less accurately than the answer.
        """
        if isinstance(end, Route) and end.hits and self.solutions:
            end = self.solutions[0]
        if isinstance(end, Solution):
            if end.log_likelihood is None:
                return end.objective
            return prior_squares(self.problem, end.vector) - 2.0 * end.log_likelihood
        offset = self._offset
        if offset is None:
            return end.objective
        cost = math.nan if end.cost is None else end.cost
        if math.isnan(cost) and not math.isfinite(end.objective):
            return math.inf
        return 2.0 * cost + offset

    @cached_property
    def _offset(self) -> float | None:
        """The number that, added to twice the cost, gives -2 log L."""
        if self.log_likelihood is None:
            return None
        offset = FitMeasure.of(self.problem).offset
        if offset is None:
            # Not of the data alone: the best solution is the end of the lowest start.
            lowest = min((s.cost for s in self.starts if math.isfinite(s.cost)), default=math.nan)
            offset = self.value_of(self.solutions[0]) - 2.0 * lowest
        return offset


def values_at(problem: Problem, vector: Array) -> tuple[dict[str, float], dict[str, float]]:
    """Return all parameters and all initial values by key, estimated or not."""
    unknowns = dict(zip(problem.keys, map(float, vector), strict=True))
    conditions = problem.conditions
    parameters: dict[str, float] = {}
    for name, parameter in problem.parameters.items():
        separate = parameter.per_experiment and len(conditions) > 1
        for key in [f"{name}[{c.name}]" for c in conditions] if separate else [name]:
            value = unknowns.get(key, parameter.fixed)
            if value is not None:
                parameters[key] = value
    parameters |= {u.key: unknowns[u.key] for u in problem.unknowns if u.kind == "noise"}
    initial: dict[str, float] = {}
    for state in problem.model.states:
        values = [float(Binding([c.initial[state]], c.scalars)(vector)[0]) for c in conditions]
        value_given = problem.initial.get(state)
        separate = (
            isinstance(value_given, Parameter)
            and value_given.per_experiment
            and len(conditions) > 1
        )
        if len(set(values)) == 1 and not separate:
            initial[state] = values[0]
        else:
            names = [f"{state}[{c.name}]" for c in conditions]
            initial |= dict(zip(names, values, strict=True))
    return parameters, initial

"""The whole protocol of a method, and of a local method that searches from one start.

Both are bases with defaults: a method only has to declare differences.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from odefit.common.arrays import Array
from odefit.methods.estimate import Estimate, NodeEvaluator, Start
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.registry import EngineName


@runtime_checkable
class Method(Protocol):
    """The interface of methods: a frozen object of options with one verb, :meth:`solve`.

    A user's own method derives from it, or has the same two members.
    """

    start_option: ClassVar[str] = ""
    """The option with the method's own start values; empty without one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The method's name in results."""

    @abstractmethod
    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns of `problem`."""

    @property
    def answer_is_final(self) -> bool:
        """True if :func:`odefit.fit` leaves the answer unchanged."""
        return False

    @property
    def examines_structure(self) -> bool:
        """True if :func:`odefit.fit` counts the solutions with the outputs of the answer."""
        return False

    def with_certificate(self, path: str | Path) -> Method:
        """Return the method that writes its proof to a file; itself if it proves nothing."""
        return self


@dataclass(frozen=True)
class _Completed(Method):
    """A user's method with only a name and `solve`, completed to the whole protocol."""

    inner: Any

    @property
    def name(self) -> str:
        return str(self.inner.name)

    def solve(self, problem: Problem, control: Control) -> Estimate:
        estimate: Estimate = self.inner.solve(problem, control)
        return estimate


def as_whole(method: Any) -> Method:
    """Return a method with the whole protocol."""
    return method if isinstance(method, Method) else _Completed(method)


class LocalMethod(Protocol):
    """A method that searches locally from one start."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name shown in results."""

    @property
    @abstractmethod
    def engine(self) -> EngineName:
        """The engine of the forward map."""

    @abstractmethod
    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """Return the end of start number `index` from `start`, in natural units.

        A failed search is returned as a value with its reason; nothing is raised.
        """

    @property
    def eliminate(self) -> bool:
        """True if unknowns of the observation alone are eliminated."""
        return False

    @property
    def controlled(self) -> bool:
        """True if it is meant for trajectories along which errors grow.

        Sensitivities are then under error control; without it, a perfect fit of data without noise
        would not be recognised.
        """
        return True

    @property
    def shares_conditions(self) -> bool:
        """True if workers may integrate the conditions of its evaluations."""
        return False

    @property
    def evaluate_nodes(self) -> NodeEvaluator | None:
        """The function that evaluates an end on nodes; None if no end has nodes."""
        return None

    def screening_map(self, forward: ForwardMap, index: int) -> ForwardMap:
        """Return the forward map on which points for start number `index` are compared."""
        return forward

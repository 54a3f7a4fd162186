"""The whole protocol of a method, and of a local method that searches from one start.

Both are bases with defaults: a method declares what differs, and nothing else is asked of it.
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

    A method of one's own derives from it, or has the same two members.
    """

    start_option: ClassVar[str] = ""
    """The option that holds start values of the method's own; empty if there is none."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The method's name in results."""

    @abstractmethod
    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns of `problem`."""

    @property
    def answer_is_final(self) -> bool:
        """True if :func:`odefit.fit` leaves the answer as it is."""
        return False

    @property
    def examines_structure(self) -> bool:
        """True if :func:`odefit.fit` counts the solutions with the outputs of the answer."""
        return False

    def with_certificate(self, path: str | Path) -> Method:
        """Return the method that writes its proof to a file; itself if it has none to write."""
        return self


@dataclass(frozen=True)
class _Completed(Method):
    """A method of a user that has a name and a verb alone, with all else of the protocol."""

    given: Any

    @property
    def name(self) -> str:
        return str(self.given.name)

    def solve(self, problem: Problem, control: Control) -> Estimate:
        estimate: Estimate = self.given.solve(problem, control)
        return estimate


def as_whole(method: Any) -> Method:
    """Return a method with the whole protocol."""
    return method if isinstance(method, Method) else _Completed(method)


class LocalMethod(Protocol):
    """A method that searches locally from one start."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that results show."""

    @property
    @abstractmethod
    def engine(self) -> EngineName:
        """The engine of the forward map."""

    @abstractmethod
    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """Return the end of start number `index` from `start`, in natural units.

        A search that fails is a value with its reason and raises nothing.
        """

    @property
    def eliminate(self) -> bool:
        """True if unknowns of the observation alone are eliminated."""
        return False

    @property
    def controlled(self) -> bool:
        """True if it is for trajectories along which errors grow.

        Then sensitivities are under error control: without it data without noise would not be seen
        to be reproduced.
        """
        return True

    @property
    def shares_conditions(self) -> bool:
        """True if workers may integrate the conditions of its evaluations."""
        return False

    @property
    def evaluate_nodes(self) -> NodeEvaluator | None:
        """The function that evaluates an end on nodes; None if no end has any."""
        return None

    def screening_map(self, forward: ForwardMap, index: int) -> ForwardMap:
        """Return the forward map on which points for start number `index` are compared."""
        return forward

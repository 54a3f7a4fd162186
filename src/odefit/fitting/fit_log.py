"""The entries of the log on a fit as a whole, see :mod:`odefit.methods.running.run_log`."""

from __future__ import annotations

import time
from typing import TypeVar

from odefit.methods.running.control import Control, Method
from odefit.methods.running.run_log import LOGGER
from odefit.problem.problem import Problem
from odefit.result_data import ResultData

R = TypeVar("R", bound=ResultData)


def log_begin(problem: Problem, method: Method, control: Control, remarks: tuple[str, ...]) -> None:
    """Log what is fitted, and how."""
    left = None if control.deadline is None else control.deadline - time.time()
    limit = "no time limit" if left is None else f"time limit {left:.3g} s"
    LOGGER.info("fit of %r by %s, seed %d, %s", problem, method.name, control.seed, limit)
    for remark in remarks:
        LOGGER.warning("%s", remark)


def log_stage(doing: str) -> None:
    """Log what is done after the search."""
    LOGGER.info("%s", doing)


def log_failure(stage: str, error: Exception) -> None:
    """Log that a stage after the search has failed, with the traceback."""
    LOGGER.error("failed after the search: %s", stage, exc_info=error)


def log_end(result: R) -> R:
    """Log how a fit has ended, and return its result."""
    for route in result.routes:
        LOGGER.info(
            "%s: starts %d, failed %d, at the best %d, objective %.6g, %.3g s: %s",
            route.name,
            route.starts,
            route.failed,
            route.hits,
            route.objective,
            route.seconds,
            route.message,
        )
    for warning in result.warnings:
        LOGGER.warning("%s", warning)
    LOGGER.info(
        "the fit ended after %.3g s: %s, objective %.10g: %s",
        result.seconds,
        result.status.value,
        result.objective,
        result.message,
    )
    return result

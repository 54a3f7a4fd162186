"""The table of the routes of the automatic method, one row each."""

from __future__ import annotations

from odefit.methods.automatic.by_experiment import two_stages
from odefit.methods.automatic.by_experiment.two_stages import TwoStageSearch
from odefit.methods.automatic.elsewhere import SCREENED as SCREENED_ELSEWHERE
from odefit.methods.automatic.iterated_search import MIN_UNKNOWNS, SCREENED
from odefit.methods.automatic.populations import PopulationSearch, refusal
from odefit.methods.automatic.routes import (
    ElsewhereRoute,
    HalvingRoute,
    IteratedRoute,
    MultipleRoute,
    RouteRow,
    SearchRoute,
    ShootingRoute,
    TranscriptionRoute,
)
from odefit.methods.automatic.successive_halving import RUNGS
from odefit.methods.automatic.successive_halving import SCREENED as SCREENED_SHORT
from odefit.methods.incremental_shooting import FINAL, IncrementalShooting
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.multi_start import MultiStart
from odefit.simulation import ForwardMap

SCREENED_POINTS = (64, 8)
"""Numbers of points of which starts of single shooting take the best, in turns. The best of many is
a good start unless nothing happens there; the best of few varies more.
"""

MAX_MESH_VALUES = 2000
"""Largest number of state values at the data times for which the problem is discretised."""


def _matching(forward: ForwardMap) -> MultiStart | str:
    from odefit.methods.automatic.matched_shooting import MatchedShooting

    if forward.problem.given.unknown_functions:
        return "the coefficients of functions would be matched one by one"
    local = MatchedShooting()
    matching = local.matching.prepared(forward)
    if matching.route == "assimilation":
        return "some states are not measured"
    return MultiStart(local, starts=None if matching.nonlinear else 1, screening=1)


def _shooting(forward: ForwardMap) -> MultiStart | str:
    return MultiStart(IncrementalShooting(), screening=SCREENED_POINTS)


def _populations(forward: ForwardMap) -> MultiStart | str:
    return refusal(forward) or MultiStart(FINAL, screening=1)


def _two_stages(forward: ForwardMap) -> MultiStart | str:
    return two_stages.refusal(forward.problem) or MultiStart(FINAL, screening=two_stages.SCREENED)


def _elsewhere(forward: ForwardMap) -> MultiStart | str:
    return MultiStart(FINAL, screening=SCREENED_ELSEWHERE)


def _halving(forward: ForwardMap) -> MultiStart | str:
    if _few_unknowns(forward):
        return "whole searches are as good with so few unknowns"
    return MultiStart(RUNGS[0], screening=SCREENED_SHORT)


def _iterated(forward: ForwardMap) -> MultiStart | str:
    if _few_unknowns(forward):
        return "random starts are as good with so few unknowns"
    return MultiStart(FINAL, screening=SCREENED)


def _few_unknowns(forward: ForwardMap) -> bool:
    return len(VariableProjection(forward, FINAL.eliminate).remaining) < MIN_UNKNOWNS


def _multiple(forward: ForwardMap) -> MultiStart | str:
    from odefit.methods.multiple_shooting import MultipleShooting

    return MultipleShooting().search(forward.problem)


def _transcription(forward: ForwardMap) -> MultiStart | str:
    points = sum(len(c.times) for c in forward.problem.conditions)
    if points * len(forward.problem.model.states) > MAX_MESH_VALUES:
        return "the discretised problem would be large"
    from odefit.methods.transcription import Transcription

    return Transcription(shooting=False).search(forward.problem)


MATCHING = RouteRow("integral matching", _matching, share=0.2, guarded=True)
SHOOTING = RouteRow("single shooting", _shooting, share=1.0, route=ShootingRoute)
POPULATIONS = RouteRow(
    "growing populations", _populations, share=20.0, optional=True, starts=PopulationSearch(FINAL)
)
TWO_STAGES = RouteRow(
    "two-stage search",
    _two_stages,
    share=0.5,
    work_per_evaluation=3.0,
    optional=True,
    starts=TwoStageSearch(FINAL),
)
HALVING = RouteRow(
    "successive halving", _halving, share=4.0, after=(2, 2), optional=True, route=HalvingRoute
)
ITERATED = RouteRow(
    "iterated local search", _iterated, share=4.0, after=(4, 4), optional=True, route=IteratedRoute
)
MULTIPLE = RouteRow(
    "multiple shooting",
    _multiple,
    share=0.3,
    after=(3, 12),
    work_per_evaluation=8.0,
    guarded=True,
    route=MultipleRoute,
)
TRANSCRIPTION = RouteRow(
    "direct transcription",
    _transcription,
    share=0.1,
    after=(40, 100),
    work_per_evaluation=30.0,
    optional=True,
    guarded=True,
    route=TranscriptionRoute,
)

ELSEWHERE = RouteRow(
    "single shooting elsewhere",
    _elsewhere,
    share=1.0,
    after=(12, 12),
    optional=True,
    route=ElsewhereRoute,
)

ROUTES = (
    MATCHING,
    POPULATIONS,
    TWO_STAGES,
    SHOOTING,
    ELSEWHERE,
    HALVING,
    ITERATED,
    MULTIPLE,
    TRANSCRIPTION,
)
"""All routes that are searches, in the order in which they begin."""


def search_routes(forward: ForwardMap) -> list[SearchRoute]:
    """Return the routes that are searches, in their order."""
    return [(row.route or SearchRoute)(row, forward) for row in ROUTES]

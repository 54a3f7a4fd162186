"""Tests of when the ends of starts suffice."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from odefit import Automatic, Control, Start, Status
from odefit.methods.automatic.evidence import EXACT_STARTS, FAR_STARTS, Evidence
from odefit.methods.automatic.families import Families
from odefit.methods.estimate import Doubt
from odefit.methods.fit_quality.noise_fit import NoiseFit
from odefit.methods.local.cost_tolerance import CostTolerance, reaches

TOLERANCE = CostTolerance(None, 1e-4, 0.0)
EXPLAINED, UNKNOWN, WRONG = (
    NoiseFit(True, freedom=100.0),
    NoiseFit(None),
    NoiseFit(False, freedom=100.0),
)


def start(
    cost: float, value: float = 1.0, status: Status = Status.CONVERGED, exact: bool = False
) -> Start:
    vector = np.array([value])
    return Start(0, vector, vector, 2 * cost, status, "", 1, 0.0, cost, {}, exact)


def evidence(costs: Sequence[float], fit: NoiseFit, untried: bool = False) -> Evidence:
    """Return the evidence of converged ends, each at a value of its own."""
    ends = [replace(start(cost, 1.0 + k), index=k) for k, cost in enumerate(costs)]
    return Evidence.of(Automatic(), ends, TOLERANCE, lambda *_: fit, lambda: untried, Families())


@pytest.mark.parametrize(
    ("costs", "fit", "enough"),
    [
        ([50.0], EXPLAINED, False),
        ([50.0, 50.0], EXPLAINED, True),
        ([50.0, 60.0], EXPLAINED, False),
        ([50.0, 50.0], NoiseFit(True, freedom=10.0), False),
        ([50.0] * 3, NoiseFit(True, freedom=10.0), True),
        ([50.0] * 4, UNKNOWN, False),
        ([50.0] * 5, UNKNOWN, True),
        ([50.0] * 5 + [60.0, 70.0], UNKNOWN, False),
        ([50.0] * 14, WRONG, False),
        ([50.0] * 15, WRONG, True),
        ([], EXPLAINED, False),
    ],
)
def test_sufficient_evidence_depends_on_the_fit(
    costs: Sequence[float], fit: NoiseFit, enough: bool
) -> None:
    assert evidence(costs, fit).enough is enough


@pytest.mark.parametrize("fit", [UNKNOWN, NoiseFit(True, freedom=10.0)])
def test_chosen_searches_that_no_other_start_confirms_are_weak_evidence(fit: NoiseFit) -> None:
    """Ten whole starts end at 60, and searches that went on from ten other starts at 50."""

    def weighed(went_on: int, whole: int = 10, confirming: int = 0) -> Evidence:
        families, costs = Families(), [50.0] * confirming + [60.0] * (whole - confirming)
        ends = [replace(start(cost, 1.0 + k), index=k) for k, cost in enumerate(costs)]
        for k in range(went_on):
            begun = replace(start(90.0, 20.0 + k, Status.NOT_CONVERGED), index=100 + k)
            gone_on = replace(start(50.0, 40.0 + k), index=200 + k)
            families.add(gone_on, begun, goes_on=True)
            ends += [begun, gone_on]
        return Evidence.of(Automatic(), ends, TOLERANCE, lambda *_: fit, lambda: False, families)

    assert not weighed(14).enough
    assert weighed(14).hits == 14
    assert weighed(15).enough
    assert weighed(3, confirming=2).enough


FAR = NoiseFit(False, freedom=100.0, share=0.9)


@pytest.mark.parametrize(
    ("costs", "fit", "untried", "ends"),
    [
        (np.linspace(60.0, 57.0, FAR_STARTS), FAR, False, True),
        (np.linspace(60.0, 57.0, FAR_STARTS - 1), FAR, False, False),
        (np.linspace(60.0, 57.0, FAR_STARTS), replace(FAR, share=0.3), False, False),
        (np.linspace(60.0, 57.0, FAR_STARTS), FAR, True, False),
        (np.linspace(60.0, 30.0, FAR_STARTS), FAR, False, False),  # they still come nearer
        (np.linspace(60.0, 57.0, FAR_STARTS), NoiseFit(None), False, False),
    ],
)
def test_a_search_ends_if_no_start_comes_near_the_data(
    costs: Sequence[float], fit: NoiseFit, untried: bool, ends: bool
) -> None:
    found = evidence(costs, fit, untried)
    assert (found.far, found.enough) == (ends, ends)
    if ends:  # which is no evidence for its answer
        assert found.status(Control(), True) is Status.NOT_CONVERGED


def test_no_route_is_left_out_while_the_data_are_not_explained() -> None:
    assert not evidence([50.0] * 15, WRONG, untried=True).enough
    assert evidence([50.0] * 5, UNKNOWN, untried=True).enough


def test_ends_that_go_back_to_the_same_start_count_once() -> None:
    """Five ends would do, and the chance of a better one is that of independent starts."""
    ends = [replace(start(50.0, 1.0 + k), index=k) for k in range(9)]
    families = Families()
    for end in ends[4:]:
        families.add(end, ends[0])

    def weighed(fit: NoiseFit) -> Evidence:
        return Evidence.of(Automatic(), ends, TOLERANCE, lambda *_: fit, lambda: False, families)

    found = weighed(UNKNOWN)
    assert (found.hits, found.count, found.enough) == (4, 4, False)
    assert weighed(EXPLAINED).enough


def test_data_that_are_reproduced_need_no_comparison_with_noise() -> None:
    def refuse(*_: object) -> NoiseFit:
        raise AssertionError

    ends = [start(1e-30, exact=True), replace(start(1e-31, 2.0, exact=True), index=1)]
    assert Evidence.of(Automatic(), ends, TOLERANCE, refuse, lambda: True, Families()).enough


@pytest.mark.parametrize(
    ("count", "overdetermined", "status", "enough"),
    [
        (EXACT_STARTS, True, Status.CONVERGED, True),
        (EXACT_STARTS - 1, True, Status.CONVERGED, False),
        (EXACT_STARTS, False, Status.CONVERGED, False),
        (EXACT_STARTS, True, Status.NOT_CONVERGED, False),
    ],
)
def test_one_exact_end_of_many_starts_suffices_if_there_are_more_values_than_unknowns(
    count: int, overdetermined: bool, status: Status, enough: bool
) -> None:
    others = [replace(start(5.0 + k, 2.0 + k), index=1 + k) for k in range(count - 1)]
    weighed = Evidence.of(
        Automatic(),
        [start(1e-30, exact=True, status=status), *others],
        TOLERANCE,
        lambda *_: UNKNOWN,
        lambda: True,
        Families(),
        overdetermined=overdetermined,
    )
    assert weighed.enough is enough


def test_an_optimum_without_a_converged_start_needs_another_start() -> None:
    ends = [replace(start(50.0, 1.0 + k, Status.NOT_CONVERGED), index=k) for k in range(3)]

    def weighed(count: int, fit: NoiseFit) -> Evidence:
        return Evidence.of(
            Automatic(), ends[:count], TOLERANCE, lambda *_: fit, lambda: False, Families()
        )

    assert not weighed(2, EXPLAINED).enough
    found = weighed(3, EXPLAINED)
    assert found.enough
    assert found.status(Control(), True) is Status.NOT_CONVERGED  # polishing may change that
    assert not weighed(3, WRONG).enough


@pytest.mark.parametrize(
    ("count", "fit", "enough"),
    [(14, UNKNOWN, False), (15, UNKNOWN, True), (30, WRONG, False)],
)
def test_many_ends_along_a_valley_without_an_end_suffice(
    count: int, fit: NoiseFit, enough: bool
) -> None:
    """With an unknown volume before the first sample, the cost falls for ever smaller volumes."""
    ends = [replace(start(50.0, 1.0 + k, Status.NOT_CONVERGED), index=k) for k in range(count)]
    asked = (lambda *_: fit, lambda: False, Families())
    assert Evidence.of(Automatic(), ends, TOLERANCE, *asked).enough is enough


def test_ends_at_the_best_cost_are_of_one_optimum_whether_or_not_they_have_converged() -> None:
    """A Hill exponent grows without end, so that no start converges, and all stop at one cost."""
    ends = [replace(start(50.0, 9.0 + k, Status.NOT_CONVERGED), index=k) for k in range(4)]
    fit = NoiseFit(True, freedom=17.0)

    def enough(count: int) -> bool:
        asked = (lambda *_: fit, lambda: False, Families())
        return Evidence.of(Automatic(), ends[:count], TOLERANCE, *asked).enough

    assert [enough(2), enough(3)] == [False, True]


def test_an_end_lower_by_an_integration_error_does_not_reset_the_count() -> None:
    ends = [replace(start(c, 1.0 + k), index=k) for k, c in enumerate([50.0] * 5 + [49.9])]

    def enough(level: bool) -> bool:
        more = (lambda *_: (None, False), lambda _: False, lambda *_: False, lambda *_: level)
        asked = (lambda *_: UNKNOWN, lambda: False, Families(), *more)
        return Evidence.of(Automatic(), ends, TOLERANCE, *asked).enough

    assert [enough(False), enough(True)] == [False, True]


class TestReaching:
    def test_equal_costs_reach_the_best(self) -> None:
        assert reaches(start(50.0, 2.0), start(50.001), TOLERANCE)
        assert not reaches(start(51.0, 2.0), start(50.0), TOLERANCE)

    def test_equal_values_reach_the_best_at_any_accuracy_of_their_costs(self) -> None:
        sharp = start(1e-19, 1.0)
        assert reaches(start(1e-8, 1.0 + 1e-6), sharp, TOLERANCE)
        assert not reaches(start(1e-8, 1.001), sharp, TOLERANCE)

    def test_a_failure_does_not_reach_the_best(self) -> None:
        failed = start(math.inf, 1.0, Status.FAILED)
        assert not reaches(failed, start(1.0, 1.0), TOLERANCE)


class TestStatus:
    @pytest.fixture
    def stopped(self) -> Control:
        return Control(deadline=0.0)

    def test_a_time_limit_that_cut_the_search_is_the_status(self, stopped: Control) -> None:
        assert evidence([50.0], UNKNOWN).status(stopped, False) is Status.TIME_LIMIT
        assert evidence([], UNKNOWN).status(stopped, False) is Status.TIME_LIMIT

    def test_a_time_limit_does_not_devalue_a_fit_as_good_as_the_noise(
        self, stopped: Control
    ) -> None:
        assert evidence([50.0], EXPLAINED).status(stopped, False) is Status.CONVERGED

    def test_an_interruption_gives_its_status(self) -> None:
        control = Control()
        control.interrupted.set()
        assert evidence([50.0], UNKNOWN).status(control, False) is Status.INTERRUPTED

    def test_no_finite_objective_is_a_failure(self) -> None:
        assert evidence([], UNKNOWN).status(Control(), False) is Status.FAILED
        assert evidence([math.inf], UNKNOWN).status(Control(), False) is Status.FAILED


def test_an_answer_in_doubt_is_not_enough_until_the_doubt_is_removed() -> None:
    ends = [replace(start(50.0, 1.0 + k), index=k) for k in range(6)]
    doubt = Doubt(("k",), 0.001)

    def asked(open_: bool) -> Evidence:
        return Evidence.of(
            Automatic(),
            ends,
            TOLERANCE,
            lambda *_: UNKNOWN,
            lambda: False,
            Families(),
            lambda *_: (doubt, open_),
        )

    assert not asked(open_=True).enough
    assert asked(open_=True).doubt is doubt
    assert asked(open_=False).enough
    assert asked(open_=True).status(Control(), False) is Status.NOT_CONVERGED


def test_an_end_that_has_stopped_in_the_valley_of_the_best_counts_at_the_noise() -> None:
    ends = [replace(start(cost, 1.0 + k), index=k) for k, cost in enumerate((50.0, 51.3))]

    def hits(fit: NoiseFit) -> int:
        more = (lambda *_: (None, False), lambda _: False, lambda *_: True)
        asked = (lambda *_: fit, lambda: False, Families(), *more)
        return Evidence.of(Automatic(), ends, TOLERANCE, *asked).hits

    assert hits(EXPLAINED) == 2
    assert hits(UNKNOWN) == 1


def test_a_match_in_closed_form_needs_no_second_hit_where_chi_square_is_typical() -> None:
    """Random starts seldom reach the answer of a chain of 198 unknowns."""
    ends = [replace(start(50.0), index=0), replace(start(9e9, 2.0), index=1)]

    def asked(chi_square: float, unique: bool) -> Evidence:
        fit = NoiseFit(True, chi_square, 110, freedom=100.0)
        more = (lambda *_: (None, False), lambda _: unique)
        questions = (lambda *_: fit, lambda: False, Families(), *more)
        return Evidence.of(Automatic(), ends, TOLERANCE, *questions)

    assert asked(105.0, unique=True).enough
    assert not asked(105.0, unique=False).enough
    assert not asked(140.0, unique=True).enough
    ends = ends[:1]
    assert not asked(105.0, unique=True).enough
    ends = [replace(ends[0], vector=np.ones(198))]
    assert asked(105.0, unique=True).enough


def test_ends_within_the_noise_that_one_start_alone_has_reached_are_missing_evidence() -> None:
    """Ten starts end at 50; ends at 51 are within the noise, each at an optimum of its own."""

    few = NoiseFit(True, freedom=10.0)

    def weighed(others: Sequence[float], fit: NoiseFit = few) -> Evidence:
        costs = [50.0] * 10 + list(others)
        ends = [replace(start(cost, 1.0 + k), index=k) for k, cost in enumerate(costs)]
        return Evidence.of(
            *(Automatic(), ends, TOLERANCE, lambda *_: fit, lambda: False, Families()),
            highest=lambda best: best.cost + 1.92,
        )

    alone = weighed([51.0, 51.1])
    assert not alone.enough
    assert alone.unseen is not None
    assert (alone.unseen.alone, alone.unseen.ends) == (2, 12)
    assert weighed([51.0, 51.0, 51.1, 51.1]).enough  # each is seen twice
    assert weighed([51.0]).enough  # 1 of 11
    assert weighed([60.0, 70.0]).enough  # not within the noise
    assert weighed([51.0, 51.1], EXPLAINED).enough  # nothing can be better

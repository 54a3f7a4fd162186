"""Sentences say what was shown, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odefit.assessment.parts import Assessment
from odefit.common.errors import some
from odefit.methods.estimate import Certificate, Completeness, Status
from odefit.reporting.sentences import endings, findings, starts_sentence, verdict
from odefit.result.result import Result
from odefit.result_data.notices import Notice, NoticeKind
from tests.reporting import examples

GOOD = examples.alpha_pinene()
TROUBLED = examples.troubled()
FAILED = examples.failed()


def words(result: Result) -> str:
    found = verdict(result)
    return " ".join([found.headline, *found.sentences, *(f.sentence for f in findings(result))])


def test_a_determined_local_optimum_is_good_news() -> None:
    found = verdict(GOOD)
    assert found.tone == "good"
    assert found.headline == "The fit converged to a local optimum."
    assert "The data determine all 5 unknowns." in found.sentences
    assert "Whether a better one exists elsewhere is not proved." in found.sentences


@pytest.mark.parametrize("result", [GOOD, TROUBLED, FAILED])
def test_global_is_never_said_without_a_bound(result: Result) -> None:
    assert "global" not in words(result).lower()


def test_a_bound_is_reported_with_its_gap_and_scope() -> None:
    bounds = Certificate(18.0, 20.0, "discretised (Radau, 20 intervals)", "A certificate.")
    text = words(replace(GOOD, assessment=replace(GOOD.assessment, bounds=bounds)))
    expected = "better than 18 (gap 10 %; discretised (Radau, 20 intervals))"
    assert expected in text


def test_completeness_is_a_count() -> None:
    complete = Completeness(2, 2, "Both were found.")
    result = replace(GOOD, assessment=replace(GOOD.assessment, complete=complete))
    assert "2 of 2 structurally possible solutions were found." in words(result)


def test_trouble_is_named() -> None:
    found = verdict(TROUBLED)
    assert found.tone == "caution"
    text = " ".join(found.sentences)
    assert "4 of 11 unknowns are not determined by the data: k2, k5, K_m, unused." in text
    assert "Weakly determined: mu_N." in text
    assert "At a bound: V_max." in text


@pytest.mark.parametrize("status", list(Status))
def test_only_a_converged_fit_is_called_so(status: Status) -> None:
    found = verdict(replace(GOOD, status=status, message="it stopped"))
    assert ("The fit converged" in found.headline) == (status is Status.CONVERGED)
    assert (found.tone == "good") == (status is Status.CONVERGED)


def test_convergence_without_a_check_is_not_called_an_optimum() -> None:
    unchecked = verdict(replace(GOOD, assessment=Assessment()))
    assert unchecked.headline.endswith("whether this is a local optimum was not checked.")
    assert GOOD.assessment.local is not None
    refuted = replace(GOOD.assessment.local, optimal=False)
    found = verdict(replace(GOOD, assessment=Assessment(local=refuted)))
    assert "was not shown to be a local optimum" in found.headline
    assert unchecked.tone == found.tone == "caution"


def test_no_solution_is_bad_news_with_its_reason() -> None:
    found = verdict(FAILED)
    assert (found.tone, found.headline) == ("bad", "No solution was found.")
    assert found.sentences == ("Every start failed.",)


def test_starts_are_grouped_by_reason_not_by_number() -> None:
    groups = endings(GOOD.starts)
    assert [(g.status, g.count) for g in groups] == [
        ("converged", 14),
        ("not converged", 4),
        ("failed", 2),
    ]
    assert groups[2].message == 'experiment "run 1", t = 1230: the step size became too small'
    assert starts_sentence(GOOD) == "20 starts: 14 converged, 4 not converged, 2 failed."


def test_long_lists_of_names_are_shortened() -> None:
    assert some([f"k{i}" for i in range(20)]).endswith("k7 and 12 more")


def test_a_disagreement_of_routes_is_stated_first() -> None:
    found = verdict(examples.routed())
    assert found.sentences[0].startswith("The routes disagree: A and B")
    assert found.sentences[1].startswith("The objective")


def test_a_local_optimum_that_does_not_fit_is_reported_as_such() -> None:
    """And the headline does not say that the search had not converged."""
    reasons = (Notice(NoticeKind.DOES_NOT_FIT, {"ratio": 9.0, "share": 0.5}),)
    ended = replace(GOOD, status=Status.NOT_CONVERGED, message="the reason")
    found = verdict(replace(ended, reasons=reasons))
    assert verdict(ended).headline == (
        "A local optimum was found, without evidence that it is the best."
    )
    assert found.headline == "A local optimum was found, but no acceptable fit."
    assert "The reason." in found.sentences
    assert "It is a local optimum." not in found.sentences


def test_a_single_possible_solution_is_reported_as_such() -> None:
    complete = Completeness(1, 1, "No other.")
    result = replace(GOOD, assessment=replace(GOOD.assessment, complete=complete))
    assert "The equations admit no other values with the same outputs." in words(result)


def test_converged_starts_do_not_contradict_an_unconverged_answer() -> None:
    local = GOOD.assessment.local
    assert local is not None
    assessment = replace(GOOD.assessment, local=replace(local, optimal=False))
    ended = replace(GOOD, status=Status.NOT_CONVERGED, assessment=assessment)
    assert verdict(ended).headline.startswith("The fit did not converge")
    said = "2 failed. At full accuracy the best end is not a local optimum."
    assert starts_sentence(ended).endswith(said)

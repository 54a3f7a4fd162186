"""What is said of identifiability from special values; the campaign has more models."""

from __future__ import annotations

import pytest

from evidence.agreement.special_models import FAMILIES, special_model
from evidence.agreement.special_starts import Judge, verdict

SPECIAL = (*range(2, 11), 12, 15)
"""Quick ones of all families."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SPECIAL)
def test_findings_on_models_from_special_values_are_true(seed: int) -> None:
    found = verdict(seed, seconds=20.0, search=False)
    assert found["false"] == []
    assert found["undecided"] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 6, 7, 9, 12, 15])
def test_as_many_solutions_are_counted_as_are_found(seed: int) -> None:
    found = verdict(seed)
    assert found["false"] == []
    assert found["found"] == found["solutions"]


def test_a_special_model_is_that_of_its_seed() -> None:
    assert special_model(7) == special_model(7)
    assert special_model(7) != special_model(16)
    assert {special_model(s).family for s in range(9)} == set(FAMILIES)


@pytest.mark.slow
def test_the_judge_detects_errors_that_double_precision_hides() -> None:
    # Of the Hill chains some begin with powers of the time that doubles lose.
    model = special_model(0)
    judge = Judge(model, 0)
    values, derivatives = judge.outputs_at(judge.truth) or (None, None)
    assert values is not None
    assert derivatives is not None
    doubles = judge._in_doubles(values, derivatives)
    digits = judge._in_digits()
    assert digits.digits == 50
    if doubles is not None:
        assert (doubles.determined, doubles.effective) == (digits.determined, digits.effective)

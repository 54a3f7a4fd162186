"""Densities of priors against SciPy's, published values, and their residuals against densities."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from odefit import InputError, Model, Prior, Problem
from odefit.problem.inputs.issues import Issues
from odefit.problem.prior_families import DENSITY_FLOOR, KINK_ROUNDING
from odefit.problem.priors import FAMILIES, as_prior, prior_table

FIELDS: dict[str, dict[str, Any]] = {
    "normal": {"mean": 4.0, "sd": 2.0},
    "laplace": {"location": 3.0, "scale": 5.0},
    "log-normal": {"mean": 0.4, "sd": 0.7},
    "log-laplace": {"location": 1.0, "scale": 0.3},
    "a wide log-laplace": {"location": 1.0, "scale": 5.0},
    "uniform": {"lower": 0.5, "upper": 8.0},
    "log-uniform": {"lower": 0.5, "upper": 5.0},
    "cauchy": {"location": 3.0, "scale": 5.0},
    "chi-square": {"degrees": 4.0},
    "a steep chi-square": {"degrees": 1.0},
    "exponential": {"scale": 3.0},
    "gamma": {"shape": 3.0, "scale": 5.0},
    "a steep gamma": {"shape": 0.4, "scale": 5.0},
    "rayleigh": {"scale": 3.0},
}

REFERENCES = {
    "normal": stats.norm(4, 2),
    "laplace": stats.laplace(3, 5),
    "log-normal": stats.lognorm(0.7, scale=math.exp(0.4)),
    "log-laplace": stats.loglaplace(1 / 0.3, scale=math.e),
    "a wide log-laplace": stats.loglaplace(0.2, scale=math.e),
    "uniform": stats.uniform(0.5, 7.5),
    "log-uniform": stats.loguniform(0.5, 5),
    "cauchy": stats.cauchy(3, 5),
    "chi-square": stats.chi2(4),
    "a steep chi-square": stats.chi2(1),
    "exponential": stats.expon(scale=3),
    "gamma": stats.gamma(3, scale=5),
    "a steep gamma": stats.gamma(0.4, scale=5),
    "rayleigh": stats.rayleigh(scale=3),
}


def prior(name: str, **more: Any) -> Prior:
    return Prior(distribution=name.split()[-1], **FIELDS[name], **more)  # type: ignore[arg-type]


def test_all_families_are_examined() -> None:
    assert {name.split()[-1] for name in FIELDS} == set(FAMILIES)


@pytest.mark.parametrize("name", FIELDS)
def test_densities_probabilities_and_quantiles_are_those_of_scipy(name: str) -> None:
    own, reference = prior(name), REFERENCES[name]
    for x in (0.6, 1.3, 2.9, 4.7):
        assert own.log_density(x) == pytest.approx(reference.logpdf(x), rel=1e-12, abs=1e-13)
        assert own.probability(-math.inf, x) == pytest.approx(reference.cdf(x), rel=1e-12)
        assert own.probability(x, math.inf) == pytest.approx(reference.sf(x), rel=1e-12)
        assert own.probability(0.55, x) == pytest.approx(reference.cdf(x) - reference.cdf(0.55))
    for p in (0.01, 0.3, 0.9):
        assert own.quantile(p) == pytest.approx(reference.ppf(p), rel=1e-10)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(("on", "base"), [("log", math.e), ("log10", 10.0)])
def test_a_density_on_a_logarithmic_scale_is_that_of_the_logarithm(
    name: str, on: Any, base: float
) -> None:
    own, reference = prior(name, on=on), REFERENCES[name]
    for z in (0.6, 2.9):
        assert own.log_density(base**z) == pytest.approx(reference.logpdf(z), rel=1e-10, abs=1e-10)
        assert own.probability(base**z, math.inf) == pytest.approx(reference.sf(z), rel=1e-9)
    assert own.quantile(0.1) == pytest.approx(base ** reference.ppf(0.1), rel=1e-9)


def test_a_probability_far_in_the_tails_keeps_its_digits() -> None:
    for low, high in ((8.0, 9.0), (-9.0, -8.0)):
        share = Prior(0.0, 1.0).probability(low, high)
        assert share == pytest.approx(stats.norm.sf(8) - stats.norm.sf(9), rel=1e-12)


PUBLISHED = {
    "uniform": ((2.0, 8.0), -1.79175946922805, -1.79175946922805),
    "normal": ((4.0, 2.0), -1.71269052620973, -1.73708571376462),
    "log-normal": ((5.0, 2.0), -2.23619159741645, -4.65851253490362),
    "cauchy": ((3.0, 5.0), -2.15728237835358, -2.90258780340177),
    "chi-square": ((4.0,), -2.23558885282238, -2.27685644868579),
    "exponential": ((3.0,), -2.72895309496787, -2.76527895533478),
    "gamma": ((3.0, 5.0), -2.17348344324312, -3.30258509299405),
    "laplace": ((3.0, 5.0), -2.19557833470717, -2.70258509299405),
    "log-laplace": ((3.0, 5.0), -3.35750526098019, -4.19013542294133),
    "log-uniform": ((3.0, 5.0), -0.93771092034198, -0.93771092034198),
    "rayleigh": ((3.0,), -1.9728021416671, -1.97667555379101),
}
"""Parameters, and the logarithms of the densities at 5, truncated to [0, 10] and not: cases 0024
and 0025 of the conformity suite of PEtab 2 (PEtab-dev/petab_test_suite, BSD-3-Clause)."""


def decay(**parameters: Any) -> Problem:
    data = {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.4]}
    model = Model(ode={"x": f"-({' + '.join(parameters)})*x"})
    return Problem(model, data, parameters, {"x": 1.0}, noise={"x": {"sd": 0.1}})


@pytest.mark.parametrize("name", PUBLISHED)
def test_log_priors_are_those_of_the_conformity_suite(name: str) -> None:
    numbers, truncated, whole = PUBLISHED[name]
    given = {"distribution": name, **dict(zip(FAMILIES[name], numbers, strict=True))}
    problem = decay(k={"lower": 0.0, "upper": 10.0, "prior": given}, b={"lower": 0, "upper": 2})
    at = np.array([5.0, 1.0])
    assert problem.log_prior(at) == pytest.approx([truncated, -math.log(2)], abs=2e-14)
    assert problem.log_prior(at, truncated=False) == pytest.approx([whole, 0.0], abs=2e-14)


@pytest.mark.parametrize("on", ["linear", "log", "log10"])
@pytest.mark.parametrize("name", FIELDS)
def test_half_the_square_of_the_residual_is_minus_the_logarithm_of_the_density(
    name: str, on: Any
) -> None:
    own = prior(name, on=on)
    base = {"linear": 0.0, "log": math.e, "log10": 10.0}[on]
    points = [base**z if base else z for z in (0.51, 1.0, 2.0, 3.7, 4.9)]
    sums = []
    for x in points:
        found = own.deviance(x)
        assert found is not None
        sums.append(found.half + own.log_density(x))
        assert 0.5 * found.residual**2 - found.excess == pytest.approx(found.half)
    kinked = "laplace" in name
    assert sums == pytest.approx([sums[0]] * len(sums), abs=3 * KINK_ROUNDING if kinked else 1e-10)


@pytest.mark.parametrize("on", ["linear", "log", "log10"])
@pytest.mark.parametrize("name", FIELDS)
def test_the_slope_of_the_residual_is_its_derivative(name: str, on: Any) -> None:
    own = prior(name, on=on)
    low, high = own.central
    for share in (0.05, 0.31, 0.5, 0.83):
        x = low + share * (min(high, 1e6 + low) - low)
        h = 1e-7 * max(abs(x), 1e-3)
        up, down, here = own.deviance(x + h), own.deviance(x - h), own.deviance(x)
        assert up is not None
        assert down is not None
        assert here is not None
        numeric = (up.residual - down.residual) / (2 * h)
        assert here.slope == pytest.approx(numeric, rel=1e-5, abs=1e-10)


MODES = {
    "normal": 4.0,
    "laplace": 3.0,
    "log-normal": math.exp(0.4 - 0.49),
    "log-laplace": math.e,
    "cauchy": 3.0,
    "chi-square": 2.0,
    "gamma": 10.0,
    "rayleigh": 3.0,
}


@pytest.mark.parametrize("name", MODES)
def test_residuals_are_smooth_and_zero_at_the_mode(name: str) -> None:
    own, mode = prior(name), MODES[name]
    slopes = []
    for d in (-1e-7, 0.0, 1e-7):
        found = own.deviance(mode + d)
        assert found is not None
        assert abs(found.residual) < 1e-2
        slopes.append(found.slope)
    assert slopes == pytest.approx([slopes[1]] * 3, rel=2e-3)
    assert slopes[1] > 0


def test_a_density_without_a_largest_value_is_constant_near_zero() -> None:
    for name in ("a steep gamma", "a steep chi-square", "a wide log-laplace"):
        tiny, less = prior(name).deviance(1e-3 * DENSITY_FLOOR), prior(name).deviance(1e-300)
        assert tiny is not None
        assert less is not None
        assert tiny.half == less.half == 0.0
        assert tiny.slope == 0.0


def test_the_information_of_priors_equals_its_formula() -> None:
    def information(name: str, x: float, **more: Any) -> float:
        found = prior(name, **more).deviance(x)
        assert found is not None
        return found.information

    assert information("normal", 1.0) == 0.25
    assert information("laplace", 3.0) == pytest.approx(1 / 25)
    assert information("exponential", 1.0) == 0.0
    assert information("gamma", 2.0) == pytest.approx(2 / 4)
    assert information("normal", 100.0, on="log10") == pytest.approx(
        0.25 / (100 * math.log(10)) ** 2
    )


@pytest.mark.parametrize("name", ["normal", "laplace", "cauchy"])
def test_the_information_of_a_location_is_that_of_fisher(name: str) -> None:
    """The mean square of the derivative of log p, here by quadrature."""
    own, reference = prior(name), REFERENCES[name]

    def share(u: float) -> float:
        x = float(reference.ppf(u))
        found = own.deviance(x)
        assert found is not None
        return (found.residual * found.slope) ** 2

    expected, _ = integrate.quad(share, 0.0, 1.0, points=[0.5])
    here = own.deviance(1.0)
    assert here is not None
    assert here.information == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["chi-square", "exponential", "gamma", "rayleigh"])
def test_the_information_on_a_positive_number_is_the_curvature(name: str) -> None:
    own, x, h = prior(name), 2.3, 1e-3
    below, here, above = (REFERENCES[name].logpdf(x + d) for d in (-h, 0.0, h))
    found = own.deviance(x)
    assert found is not None
    assert found.information == pytest.approx(-(above - 2 * here + below) / h**2, abs=1e-6)


@pytest.mark.parametrize("on", ["linear", "log", "log10"])
@pytest.mark.parametrize("name", FIELDS)
def test_priors_are_written_as_they_are_read(name: str, on: Any) -> None:
    own, issues = prior(name, on=on), Issues()
    assert as_prior(prior_table(own), "k.prior", issues) == own
    assert as_prior(own, "k.prior", issues) == own
    assert not issues.errors


def test_priors_describe_themselves() -> None:
    assert str(Prior(1.0, 0.25)) == "1 ± 0.25"
    assert str(prior("laplace", on="log10")) == "laplace of log10 (location 3, scale 5)"
    assert str(prior("rayleigh")) == "rayleigh (scale 3)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"distribution": "lapace"}, "k.prior.distribution: got 'lapace'; did you mean 'laplace'?"),
        ({"distribution": ["a"]}, "k.prior.distribution: got a list"),
        ({"mean": 1, "sd": 1, "on": "ln"}, 'k.prior.on: expected "linear", "log" or "log10"'),
        (
            {"distribution": "laplace", "mean": 1, "sd": 1},
            'expected { distribution = "laplace", location = ..., scale = ... }',
        ),
        ({"distribution": "gamma", "shape": -1, "scale": 1}, "k.prior.shape: must be positive"),
        ({"distribution": "uniform", "lower": 2, "upper": 1}, "lower = 2 must be below upper = 1"),
        ({"distribution": "log-uniform", "lower": 0, "upper": 1}, "lower: must be positive"),
    ],
)
def test_meaningless_priors_are_refused(given: Mapping[str, Any], message: str) -> None:
    issues = Issues()
    assert as_prior(given, "k.prior", issues) is None
    assert any(message in error for error in issues.errors), issues.errors


def test_bounds_keep_to_where_the_density_is_not_zero() -> None:
    problem = decay(
        k={"lower": -1.0, "upper": 9.0, "prior": prior("uniform")},
        b={"upper": 9.0, "prior": prior("normal", on="log10")},
    )
    assert problem.lower.tolist() == [0.5, 0.0]
    assert problem.upper.tolist() == [8.0, 9.0]
    assert problem.parameters["k"].lower == -1.0
    with pytest.raises(InputError, match="its density is zero outside"):
        decay(k={"upper": -1.0, "prior": prior("gamma")})
    with pytest.raises(InputError, match="density is zero at guess = 9"):
        decay(k={"guess": 9.0, "prior": prior("uniform")})


def test_locations_are_drawn_again_and_families_without_one_stay() -> None:
    random = np.random.default_rng(1)
    drawn = [prior("laplace", on="log").drawn(10.0, random).location for _ in range(4000)]
    assert np.median(np.array(drawn, dtype=float)) == pytest.approx(math.log(10.0), abs=0.3)
    spread = np.mean(np.abs(np.array(drawn, dtype=float) - math.log(10.0)))
    assert spread == pytest.approx(5.0, rel=0.05)
    means = [prior("log-normal").drawn(10.0, random).mean for _ in range(4000)]
    assert np.mean(np.array(means, dtype=float)) == pytest.approx(math.log(10.0), abs=0.04)
    assert prior("gamma").drawn(1.0, random) == prior("gamma")


def test_normal_priors_of_about_the_same_width() -> None:
    assert prior("uniform").normal() is None
    assert prior("log-normal").normal() == prior("log-normal")
    near = prior("laplace").normal()
    assert near is not None
    assert near.mean == pytest.approx(3.0)
    assert prior("gamma").normal().on == "log"  # type: ignore[union-attr]


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_normal_prior_of_about_the_same_width_follows_the_unit(scale: float) -> None:
    one, other = (Prior(distribution="gamma", shape=3.0, scale=s).normal() for s in (1.0, scale))
    assert one is not None
    assert other is not None
    assert other.on == one.on == "log"
    assert other.sd == pytest.approx(one.sd)
    assert other.mean == pytest.approx((one.mean or 0.0) + math.log(scale))

"""Taylor coefficients and their derivatives: known series, other arithmetics, differences."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Any

import mpmath
import numpy as np
import pytest

from odefit.expressions.expressions import parse
from odefit.structure.series.deadline import Deadline, UnfinishedError
from odefit.structure.series.number_fields import COMPLEX, MODULAR, PRIME
from odefit.structure.series.series import RationalODE, SeriesProgram
from odefit.structure.series.tape import Recording, Tape


def program(
    ode: dict[str, str],
    outputs: list[str],
    parameters: str = "",
    known: str = "",
    functions: str = "",
) -> SeriesProgram:
    """Initial values are the unknowns ``<state>0``, after the parameters."""
    tape = Tape()
    names = [*parameters.split(), *known.split(), *functions.split(), *ode]
    values = {n: tape.variable(n) for n in names}
    algebra = Recording(tape)

    def terms(texts: Any) -> tuple[Any, ...]:
        return tuple(parse(text).evaluate(values, algebra) for text in texts)

    initial = tuple(tape.variable(f"{s}0") for s in ode)
    return SeriesProgram(
        RationalODE(
            tape,
            (*(values[p] for p in parameters.split()), *initial),
            tuple(values[s] for s in ode),
            terms(ode.values()),
            initial,
            terms(outputs),
            tuple(values[k] for k in known.split()),
            tuple(values[f] for f in functions.split()),
        )
    )


def series(p: SeriesProgram, point: list[float], order: int, **more: Any) -> Any:
    run = p.run(COMPLEX, np.array([point], dtype=complex), order, **more)
    return run.outputs[0].real


@pytest.mark.parametrize(
    ("ode", "output", "point", "solution"),
    [
        ({"x": "-k*x"}, "x", [0.7, 2.0], lambda t: 2 * mpmath.exp(-0.7 * t)),
        ({"x": "k*x^2"}, "x", [0.5, 1.5], lambda t: 1.5 / (1 - 0.75 * t)),
        ({"x": "x/(1 + k)"}, "x^3", [1.0, 2.0], lambda t: 8 * mpmath.exp(1.5 * t)),
        ({"x": "1/x"}, "k*x", [3.0, 2.0], lambda t: 3 * mpmath.sqrt(4 + 2 * t)),
        ({"s": "k*c", "c": "-k*s"}, "s/c", [2.0, 0.0, 1.0], lambda t: mpmath.tan(2 * t)),
        ({"x": "x*(1 - x)"}, "x + 0*k", [0.0, 0.25], lambda t: 1 / (1 + 3 * mpmath.exp(-t))),
        ({"x": "1 + x^2"}, "x - k", [0.0, 0.0], mpmath.tan),
    ],
)
def test_coefficients_are_those_of_the_closed_solution(
    ode: dict[str, str], output: str, point: list[float], solution: Any
) -> None:
    with mpmath.workdps(40):
        expected = [float(c) for c in mpmath.taylor(solution, 0, 12)]
    np.testing.assert_allclose(
        series(program(ode, [output], "k"), point, 12)[:, 0], expected, rtol=1e-12, atol=1e-14
    )


LORENZ = {"x": "a*(y - x)", "y": "x*(b - z) - y", "z": "x*y/(1 + z^2) - c*z"}
OUTPUTS = ["x", "y*z/(1 + x^2)", "a*b"]


def test_derivatives_agree_with_a_complex_step_of_the_real_series() -> None:
    p = program(LORENZ, OUTPUTS, "a b c")
    rng = np.random.default_rng(0)
    point = rng.uniform(0.5, 1.5, 6)
    taylor = p.run(COMPLEX, point[None].astype(complex), 9)
    assert taylor.derivatives is not None
    moved = np.repeat(point[None].astype(complex), 6, axis=0) + 1e-30j * np.eye(6)
    steps = p.run(COMPLEX, moved, 9, derivatives=False).outputs.imag / 1e-30
    np.testing.assert_allclose(
        taylor.derivatives[0].real, np.moveaxis(steps, 0, 2), rtol=1e-11, atol=1e-12
    )


def test_derivatives_at_complex_points_agree_with_differences() -> None:
    p = program(LORENZ, OUTPUTS, "a b c")
    rng = np.random.default_rng(1)
    point = rng.normal(size=6) + 1j * rng.normal(size=6)
    taylor = p.run(COMPLEX, point[None], 6)
    assert taylor.derivatives is not None
    for k in range(6):
        step = np.zeros(6, dtype=complex)
        step[k] = 1e-6
        up, down = (p.run(COMPLEX, (point + s * step)[None], 6).outputs[0] for s in (1, -1))
        expected = (up - down) / 2e-6
        scale = np.abs(expected).max(axis=1, keepdims=True) + 1.0
        assert np.all(np.abs(taylor.derivatives[0, :, :, k] - expected) <= 1e-5 * scale)


def rational_series(order: int, a: Fraction, x: Fraction, y: Fraction) -> list[Fraction]:
    """Of ``x' = a x y, y' = x/(1 + y)`` by exact recurrences, the coefficients of x."""
    xs, ys, quotients = [x], [y], list[Fraction]()
    for j in range(order):
        rest = xs[j] - sum((quotients[i] * ys[j - i] for i in range(j)), Fraction(0))
        quotients.append(rest / (1 + ys[0]))
        product = sum((xs[i] * ys[j - i] for i in range(j + 1)), Fraction(0))
        xs.append(a * product / (j + 1))
        ys.append(quotients[j] / (j + 1))
    return xs


def test_residues_are_those_of_the_exact_rational_coefficients() -> None:
    p = program({"x": "a*x*y", "y": "x/(1 + y)"}, ["x"], "a")
    values = (Fraction(3, 7), Fraction(22, 5), Fraction(-13, 11))
    expected = rational_series(10, *values)
    residues = [MODULAR.exact(v) for v in values]
    taylor = p.run(MODULAR, np.array([residues], dtype=np.int64), 10)
    assert taylor.outputs[0, :, 0].tolist() == [MODULAR.exact(c) for c in expected]
    # And for floats.
    found = series(p, [float(v) for v in values], 10)[:, 0]
    np.testing.assert_allclose(found, [float(c) for c in expected], rtol=1e-12)


def test_derivatives_modulo_the_prime_are_exact() -> None:
    """Coefficients of polynomial equations are polynomials: their differences are exact."""
    p = program({"x": "a*x + x*y", "y": "x - b*y^2"}, ["x*y"], "a b")
    point = np.array([[5, 7, 11, 13]], dtype=np.int64)
    taylor = p.run(MODULAR, point, 4)
    assert taylor.derivatives is not None
    for k in range(4):
        # f'(0) from values at 0, ..., 12, a polynomial of degree at most 12.
        count = 13
        many = np.repeat(point, count, axis=0)
        many[:, k] += np.arange(count)
        values = p.run(MODULAR, many, 4, derivatives=False).outputs[:, :, 0]
        weights = [
            Fraction(
                (-1) ** (i + 1) * factorial(count - 1), i * factorial(i) * factorial(count - 1 - i)
            )
            for i in range(1, count)
        ]
        residues = [MODULAR.exact(w) for w in weights]
        first = MODULAR.exact(-sum(weights, Fraction(0)))
        for j in range(5):
            total = first * int(values[0, j])
            total += sum(w * int(v) for w, v in zip(residues, values[1:, j], strict=True))
            assert total % PRIME == taylor.derivatives[0, j, 0, k]


def test_known_functions_enter_by_their_series() -> None:
    # x' = u with u = sin: x = 1 - cos + x0.
    p = program({"x": "k*u"}, ["x"], "", "k", "u")
    sine = [0.0, 1.0, 0.0, -1 / 6, 0.0, 1 / 120, 0.0]
    found = series(
        p,
        [2.0],
        6,
        known=np.array([[3.0 + 0j]]),
        functions=np.array([[sine]], dtype=complex),
    )
    np.testing.assert_allclose(found[:, 0], [2, 0, 1.5, 0, -1 / 8, 0, 1 / 240], atol=1e-15)


def test_a_batch_equals_its_points_evaluated_one_by_one() -> None:
    p = program(LORENZ, OUTPUTS, "a b c")
    points = np.random.default_rng(2).normal(size=(5, 6)).astype(complex)
    together = p.run(COMPLEX, points, 5)
    assert together.derivatives is not None
    for k, point in enumerate(points):
        alone = p.run(COMPLEX, point[None], 5)
        assert alone.derivatives is not None
        np.testing.assert_allclose(together.outputs[k], alone.outputs[0], rtol=1e-12)
        np.testing.assert_allclose(
            together.derivatives[k], alone.derivatives[0], rtol=1e-10, atol=1e-12
        )


def test_a_division_by_zero_in_the_prime_field_is_reported() -> None:
    p = program({"x": "1/x"}, ["x"])
    with pytest.raises(ZeroDivisionError):
        p.run(MODULAR, np.zeros((1, 1), dtype=np.int64), 2)


def test_the_inverse_modulo_the_prime() -> None:
    values = np.random.default_rng(3).integers(1, PRIME, 50)
    assert np.all(values * MODULAR.inverse(values) % PRIME == 1)


def test_sensitivities_count_as_work_before_memory_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of 1,000 sines of the time took 18 s and 800 MB, of which next to nothing counted."""
    n, order = 40, 3
    given = program({f"x{i}": f"-x{i}" for i in range(n)}, ["x0"])
    given.prepare()
    unknowns = np.arange(1, n + 1)[None]
    spent = []
    for derivatives in (False, True):
        given.deadline = Deadline()
        given.run(MODULAR, unknowns, order, derivatives=derivatives)
        spent.append(given.deadline.spent)
    values = (order + 1) * (2 * n + 1) * n  # of states, rates and the output, by initial values
    assert spent[1] - spent[0] >= values

    def dense(*_: object) -> None:
        raise AssertionError("memory was taken")

    monkeypatch.setattr("odefit.structure.series.series.SparseJacobian.dense", dense)
    given.deadline = Deadline(work=spent[0] + 1)
    with pytest.raises(UnfinishedError):
        given.run(MODULAR, unknowns, order)

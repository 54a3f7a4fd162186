"""Right-hand sides, written by hand from the papers (misprints corrected as FACTS.md says).

Every function takes the parameters by name and returns f(t, x) -> x'. The states keep the papers'
order. They use only + - * / and `mpmath` functions, so that they run on floats and on 30-digit
numbers.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp

from library_data.integrator import RightHandSide, Vector

Number = Any  # float or mpmath number


def alpha_pinene(p1: Number, p2: Number, p3: Number, p4: Number, p5: Number) -> RightHandSide:
    """outer-approximation (41)-(45); the other paper's x5' is misprinted."""

    def f(t: Number, x: Vector) -> Vector:
        x1, _, x3, _, x5 = x
        return [
            -(p1 + p2) * x1,
            p1 * x1,
            p2 * x1 - (p3 + p4) * x3 + p5 * x5,
            p3 * x3,
            p4 * x3 - p5 * x5,
        ]

    return f


def batch_growth(mu_max: Number, K_s: Number, k_d: Number, yield_: Number) -> RightHandSide:
    """BBG: biomass and substrate in a stirred batch reactor, Monod growth."""

    def f(t: Number, x: Vector) -> Vector:
        biomass, substrate = x
        growth = mu_max * substrate * biomass / (K_s + substrate)
        return [growth - k_d * biomass, -growth / yield_]

    return f


def fitzhugh_nagumo(a: Number, b: Number, c: Number) -> RightHandSide:
    """The classical signs: R' = -(V - a + b R) / c."""

    def f(t: Number, x: Vector) -> Vector:
        v, r = x
        return [c * (v - v * v * v / 3 + r), -(v - a + b * r) / c]

    return f


def fitzhugh_nagumo_rational(g: Number, a: Number, b: Number) -> RightHandSide:
    """rational-odes-algebraic (6): the recovery equation without the minus sign."""

    def f(t: Number, x: Vector) -> Vector:
        v, r = x
        return [g * (v - v * v * v / 3 + r), (v - a + b * r) / g]

    return f


def harmonic(a: Number, b: Number) -> RightHandSide:
    return lambda t, x: [-a * x[1], x[0] / b]


def van_der_pol(a: Number, b: Number) -> RightHandSide:
    return lambda t, x: [a * x[1], -x[0] - b * (x[0] * x[0] - 1) * x[1]]


def lotka_volterra(k1: Number, k2: Number, k3: Number) -> RightHandSide:
    def f(t: Number, x: Vector) -> Vector:
        r, w = x
        return [k1 * r - k2 * r * w, k2 * r * w - k3 * w]

    return f


def mammillary_3(a21: Number, a31: Number, a01: Number, a12: Number, a13: Number) -> RightHandSide:
    def f(t: Number, x: Vector) -> Vector:
        x1, x2, x3 = x
        return [
            -(a21 + a31 + a01) * x1 + a12 * x2 + a13 * x3,
            a21 * x1 - a12 * x2,
            a31 * x1 - a13 * x3,
        ]

    return f


def mammillary_4(
    k01: Number, k12: Number, k13: Number, k14: Number, k21: Number, k31: Number, k41: Number
) -> RightHandSide:
    def f(t: Number, x: Vector) -> Vector:
        x1, x2, x3, x4 = x
        return [
            k12 * x2 + k13 * x3 + k14 * x4 - (k01 + k21 + k31 + k41) * x1,
            k21 * x1 - k12 * x2,
            k31 * x1 - k13 * x3,
            k41 * x1 - k14 * x4,
        ]

    return f


def hiv(
    lam: Number,
    d: Number,
    beta: Number,
    a: Number,
    k: Number,
    u: Number,
    c: Number,
    q: Number,
    b: Number,
    h: Number,
) -> RightHandSide:
    """Wodarz and Nowak's model; local-and-global-solvers misprints the sign of lambda."""

    def f(t: Number, state: Vector) -> Vector:
        x, y, v, w, z = state
        infection = beta * x * v
        response = c * q * y * w
        return [
            lam - d * x - infection,
            infection - a * y,
            k * y - u * v,
            c * x * y * w - response - b * w,
            response - h * z,
        ]

    return f


def crauste(
    mu_N: Number,
    delta_NE: Number,
    mu_EE: Number,
    delta_EL: Number,
    rho_E: Number,
    delta_LM: Number,
    mu_LL: Number,
    mu_LE: Number,
    mu_M: Number,
    rho_P: Number,
    mu_P: Number,
    mu_PE: Number,
    mu_PL: Number,
) -> RightHandSide:
    """CD8 T cells; local-and-global-solvers misprints the sign of mu_N N."""

    def f(t: Number, x: Vector) -> Vector:
        n, e, s, m, p = x
        return [
            -mu_N * n - delta_NE * n * p,
            delta_NE * n * p - mu_EE * e * e - delta_EL * e + rho_E * e * p,
            delta_EL * s - delta_LM * s - mu_LL * s * s - mu_LE * e * s,
            delta_LM * s - mu_M * m,
            rho_P * p * p - mu_P * p - mu_PE * e * p - mu_PL * s * p,
        ]

    return f


def seir(a: Number, b: Number, nu: Number) -> RightHandSide:
    """States S, E, I, N; the population N is constant."""

    def f(t: Number, x: Vector) -> Vector:
        s, e, i, n = x
        infection = b * s * i / n
        return [-infection, infection - nu * e, nu * e - a * i, 0 * n]

    return f


def biohydrogenation(
    k5: Number, k6: Number, k7: Number, k8: Number, k9: Number, k10: Number
) -> RightHandSide:
    def f(t: Number, x: Vector) -> Vector:
        x4, x5, x6, _ = x
        first = k5 * x4 / (k6 + x4)
        second = k7 * x5 / (k8 + x5 + x6)
        third = k9 * x6 * (k10 - x6) / k10
        return [-first, first - second, second - third, third]

    return f


def henon_heiles(a: Number, b: Number, c: Number, d: Number) -> RightHandSide:
    """H = (px^2 + py^2)/2 + (a x^2 + b y^2)/2 + c x^2 y - d y^3/3."""

    def f(t: Number, state: Vector) -> Vector:
        x, y, px, py = state
        return [px, py, -a * x - 2 * c * x * y, -b * y - c * x * x + d * y * y]

    return f


def rikitake(mu: Number, a: Number) -> RightHandSide:
    def f(t: Number, state: Vector) -> Vector:
        x, y, z = state
        return [-mu * x + z * y, -mu * y + (z - a) * x, 1 - x * y]

    return f


def sir(beta: Number, gamma: Number) -> RightHandSide:
    """separable-least-squares (9) with one age group and one season."""

    def f(t: Number, x: Vector) -> Vector:
        s, i = x
        return [-beta * s * i, beta * s * i - gamma * i]

    return f


def seasonal_lotka_volterra(
    alpha: Number, beta: Number, gamma: Number, delta: Number, epsilon: Number, omega: Number
) -> RightHandSide:
    """Predation forced with a period of 25."""

    def f(t: Number, x: Vector) -> Vector:
        prey, predator = x
        met = (1 + epsilon * mp.sin(2 * mp.pi * (t / 25 + omega))) * prey * predator
        return [alpha * prey - beta * met, delta * met - gamma * predator]

    return f


def gma(
    gamma11: Number,
    f121: Number,
    f131: Number,
    gamma12: Number,
    f112: Number,
    f122: Number,
    gamma13: Number,
    f113: Number,
    f133: Number,
    gamma22: Number,
    f222: Number,
    gamma32: Number,
    f332: Number,
) -> RightHandSide:
    """Voit's generalised mass action pathway with three metabolites."""

    def f(t: Number, x: Vector) -> Vector:
        x1, x2, x3 = x
        v11 = gamma11 * x2**f121 * x3**f131
        v12 = gamma12 * x1**f112 * x2**f122
        v13 = gamma13 * x1**f113 * x3**f133
        return [v11 - v12 - v13, v12 - gamma22 * x2**f222, v13 - gamma32 * x3**f332]

    return f


def hiv_proteinase(k3: Number, k42: Number, k22: Number, k52: Number, k6: Number) -> RightHandSide:
    """outer-approximation (48)-(56), states M P S I ES EP E EI EJ, (49) without its factors 2."""
    k11, k12, k21, k41, k51 = 0.1, 0.001, 100.0, 100.0, 100.0

    def f(t: Number, state: Vector) -> Vector:
        m, p, s, i, es, ep, e, ei, _ = state
        dimerisation = k11 * m * m - k12 * e
        substrate = k21 * s * e - k22 * es
        product = k41 * p * e - k42 * ep
        inhibitor = k51 * i * e - k52 * ei
        return [
            -2 * dimerisation,
            k3 * es - product,
            -substrate,
            -inhibitor,
            substrate - k3 * es,
            product,
            dimerisation - substrate + k3 * es - product - inhibitor,
            inhibitor - k6 * ei,
            k6 * ei,
        ]

    return f

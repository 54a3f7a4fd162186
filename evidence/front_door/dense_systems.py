"""Systems of textbooks for the campaign `automatic`: equations, what is measured, for how long.

Every parameter and every initial value that :attr:`DenseSystem.known` does not give is an unknown.
True values are between 0.1 and 0.9, and factors in the equations give them the size that the
physics needs. `dense_data` draws the values and simulates the measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class DenseSystem:
    """A system that is measured at many times."""

    name: str  # name, field_of_use: Its name, and the field where it comes from
    field_of_use: str
    ode: Mapping[str, str]  # the right-hand side of each state
    observed: tuple[str, ...]  # the states that are measured
    end: float  # the last time; the first is 0
    points: int = 1001  # the number of times
    # Initial values that are known, by state
    known: Mapping[str, float] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)  # known numbers
    # Times, and what is assigned then
    events: tuple[tuple[tuple[float, ...], Mapping[str, str]], ...] = ()
    # The interpolation of each input, and its values as an expression in the time
    inputs: Mapping[str, tuple[Literal["linear", "cubic"], str]] = field(default_factory=dict)


def _every(step: float, first: float, end: float) -> tuple[float, ...]:
    """Return the times `first`, ``first + step``, ... before `end`."""
    count = int((end - first) / step - 1e-9) + 1
    return tuple(round(first + k * step, 12) for k in range(count))


# Circuits, linear and not, two of them with states a hundred times faster than the time span
CIRCUITS = (
    DenseSystem(
        "rlc-driven",
        "circuits",
        {"i": "l*(sin(t) - r*i - v)", "v": "c*i"},
        ("v",),
        end=60.0,
    ),
    DenseSystem(
        "fast-filter",
        "circuits",
        {"i": "100*(l*sin(100*t) - r*i - l*v)", "v": "100*(c*i - g*v)"},
        ("v",),
        end=1.0,
        points=1501,
    ),
    DenseSystem(
        "switched-converter",
        "circuits",
        {"i": "100*(l*(s - v) - r*i)", "v": "100*(c*i - g*v + 0.2*sin(100*t))"},
        ("i", "v"),
        end=1.0,
        points=1501,
        constants={"s": 1.0},
        events=(
            (_every(0.125, 0.0625, 1.0), {"s": "0"}),
            (_every(0.125, 0.125, 1.0), {"s": "1"}),
        ),
    ),
    DenseSystem(
        "van-der-pol-driven",
        "circuits",
        {"x": "y", "y": "5*m*(1 - x^2)*y - x + f*cos(0.7*t)"},
        ("x",),
        end=50.0,
        points=1501,
    ),
    DenseSystem(
        "fitzhugh-nagumo-hidden",
        "circuits",
        {"v": "3*(v - v^3/3 - w + 0.5)", "w": "(v + a - b*w)*c/3"},
        ("v",),
        end=60.0,
        points=1501,
    ),
)

# Oscillators, driven and coupled, and a motor with a measured voltage
MECHANICS = (
    DenseSystem(
        "pendulum",
        "mechanics",
        {"phi": "w", "w": "-4*g*sin(phi) - 0.2*d*w"},
        ("phi",),
        end=40.0,
    ),
    DenseSystem(
        "duffing-driven",
        "mechanics",
        {"x": "v", "v": "-0.3*d*v - a*x - 2*b*x^3 + f*cos(1.3*t)"},
        ("x",),
        end=50.0,
        points=1501,
    ),
    DenseSystem(
        "coupled-oscillators",
        "mechanics",
        {
            "x1": "v1",
            "v1": "-k1*x1 + k2*(x2 - x1) - 0.1*d*v1",
            "x2": "v2",
            "v2": "-k3*x2 - k2*(x2 - x1)",
        },
        ("x1", "x2"),
        end=50.0,
    ),
    DenseSystem(
        "suspension",
        "mechanics",
        {
            "body": "up",
            "up": "k*(wheel - body) + c*(down - up)",
            "wheel": "down",
            "down": "5*(h*(0.3*sin(2*t) - wheel) - k*(wheel - body) - c*(down - up))",
        },
        ("body", "wheel"),
        end=30.0,
    ),
    DenseSystem(
        "dc-motor",
        "mechanics",
        {"i": "20*(u - r*i - k*w)", "w": "k*i - b*w - 0.1*q*w^3"},
        ("w",),
        end=20.0,
        known={"i": 0.0},
        inputs={"u": ("linear", "sin(0.9*t) + 0.5*sin(2.3*t)")},
    ),
)

# Reactors, among them two stiff ones, and a wall beside air of a measured temperature
REACTORS = (
    DenseSystem(
        "stirred-tank",
        "reactors",
        {
            "x": "-x + 0.2*a*(1 - x)*exp(h/(1 + h/20))",
            "h": "-h + 1.6*b*a*(1 - x)*exp(h/(1 + h/20)) - 3*c*(h - 0.5*sin(0.5*t))",
        },
        ("h",),
        end=40.0,
    ),
    DenseSystem(
        "batch-reactor",
        "reactors",
        {
            "a": "-k1*a + k2*b",
            "b": "k1*a - k2*b - k3*b - k4*b^2",
            "c": "k3*b - 0.5*k5*c",
        },
        ("a", "b", "c"),
        end=12.0,
    ),
    DenseSystem(
        "brusselator",
        "reactors",
        {"x": "a + x^2*y - (1 + 4*b)*x", "y": "4*b*x - x^2*y"},
        ("x",),
        end=40.0,
        points=1501,
    ),
    DenseSystem(
        "chemostat",
        "reactors",
        {
            "s": "0.5*q*(1 + 0.5*sin(0.4*t))*(2 - s) - m*s*x/(k + s)/y",
            "x": "m*s*x/(k + s) - 0.5*q*(1 + 0.5*sin(0.4*t))*x",
        },
        ("s", "x"),
        end=60.0,
    ),
    DenseSystem(
        "robertson",
        "reactors",
        {
            "y1": "-a*y1 + 1000*b*y2*y3",
            "y2": "a*y1 - 1000*b*y2*y3 - 100000*c*y2^2",
            "y3": "100000*c*y2^2",
        },
        ("y1", "y3"),
        end=40.0,
        known={"y2": 0.0, "y3": 0.0},
    ),
    DenseSystem(
        "oregonator",
        "reactors",
        {
            "x": "(0.01*q*y - x*y + x*(1 - x))/(0.1*e)",
            "y": "50*(-0.01*q*y - x*y + f*z)",
            "z": "x - z",
        },
        ("x", "z"),
        end=20.0,
        points=1501,
    ),
    DenseSystem(
        "heated-wall",
        "reactors",
        {"inner": "a*(outer - inner) + h", "outer": "b*(inner - outer) + c*(air - outer)"},
        ("inner", "outer"),
        end=50.0,
        inputs={"air": ("cubic", "1 + 0.6*sin(0.5*t) + 0.2*sin(1.7*t)")},
    ),
)

# Compartments with repeated doses
PHARMACOKINETICS = (
    DenseSystem(
        "two-compartments",
        "pharmacokinetics",
        {
            "gut": "-2*ka*gut",
            "blood": "2*ka*gut - (ke + k12)*blood + k21*tissue",
            "tissue": "k12*blood - k21*tissue",
        },
        ("blood",),
        end=48.0,
        known={"gut": 1.0, "blood": 0.0, "tissue": 0.0},
        events=((_every(8.0, 8.0, 48.0), {"gut": "gut + 1"}),),
    ),
    DenseSystem(
        "three-compartments",
        "pharmacokinetics",
        {
            "blood": "-(ke + k12 + k13)*blood + k21*fast + 0.1*k31*slow",
            "fast": "k12*blood - k21*fast",
            "slow": "k13*blood - 0.1*k31*slow",
        },
        ("blood",),
        end=40.0,
        known={"blood": 1.0, "fast": 0.0, "slow": 0.0},
        events=((_every(10.0, 10.0, 40.0), {"blood": "blood + 1"}),),
    ),
    DenseSystem(
        "saturable-elimination",
        "pharmacokinetics",
        {"gut": "-ka*gut", "blood": "f*ka*gut - vm*blood/(km + blood)"},
        ("blood",),
        end=60.0,
        known={"gut": 2.0, "blood": 0.0},
        events=((_every(12.0, 12.0, 60.0), {"gut": "gut + 2"}),),
    ),
    DenseSystem(
        "indirect-response",
        "pharmacokinetics",
        {"drug": "-ke*drug", "effect": "kin*(1 - drug/(ic + drug)) - kout*effect"},
        ("drug", "effect"),
        end=48.0,
        known={"drug": 2.0},
        events=((_every(12.0, 12.0, 48.0), {"drug": "drug + 2"}),),
    ),
)

# Epidemics of which the infectious are counted
EPIDEMICS = (
    DenseSystem(
        "sir-births",
        "epidemics",
        {"s": "0.1*m*(1 - s) - 4*b*s*i", "i": "4*b*s*i - (g + 0.1*m)*i"},
        ("i",),
        end=100.0,
    ),
    DenseSystem(
        "seir-seasonal",
        "epidemics",
        {
            "s": "0.1*m*(1 - s) - 4*b*(1 + 0.5*a*cos(0.5*t))*s*i",
            "e": "4*b*(1 + 0.5*a*cos(0.5*t))*s*i - n*e",
            "i": "n*e - g*i",
        },
        ("i",),
        end=100.0,
    ),
)

# Circuits of genes that repress each other or themselves
GENES = (
    DenseSystem(
        "repressilator",
        "gene circuits",
        {
            "p1": "4*a1/(1 + (p3/k)^4) - d*p1",
            "p2": "4*a2/(1 + (p1/k)^4) - d*p2",
            "p3": "4*a3/(1 + (p2/k)^4) - d*p3",
        },
        ("p1", "p2", "p3"),
        end=80.0,
    ),
    DenseSystem(
        "toggle-switch",
        "gene circuits",
        {
            "u": "3*a*(1 + 0.8*sin(0.3*t))/(1 + v^2) - d*u",
            "v": "3*b*(1 - 0.8*sin(0.3*t))/(1 + u^2) - e*v",
        },
        ("u", "v"),
        end=80.0,
    ),
    DenseSystem(
        "goodwin",
        "gene circuits",
        {"m": "2*a/(1 + z^10) - b*m", "p": "c*m - b*p", "z": "d*p - b*z"},
        ("z",),
        end=60.0,
    ),
)

# Predators and prey, one pair of them with the prey alone observed
ECOLOGY = (
    DenseSystem(
        "lotka-volterra-prey",
        "ecology",
        {"prey": "a*prey - b*prey*hunter", "hunter": "b*prey*hunter - c*hunter"},
        ("prey",),
        end=100.0,
        points=1501,
    ),
    DenseSystem(
        "lotka-volterra-driven",
        "ecology",
        {
            "prey": "a*(1 + 0.5*sin(t))*prey - b*prey*hunter",
            "hunter": "d*prey*hunter - c*hunter",
        },
        ("prey", "hunter"),
        end=60.0,
        points=1501,
    ),
    DenseSystem(
        "rosenzweig-macarthur",
        "ecology",
        {
            "prey": "2*r*prey*(1 - prey/(4*k)) - 3*a*prey*hunter/(1 + prey)",
            "hunter": "3*a*prey*hunter/(1 + prey) - m*hunter",
        },
        ("prey", "hunter"),
        end=60.0,
        points=1501,
    ),
)

# All systems by name
SYSTEMS = {
    system.name: system
    for system in (
        *CIRCUITS,
        *MECHANICS,
        *REACTORS,
        *PHARMACOKINETICS,
        *EPIDEMICS,
        *GENES,
        *ECOLOGY,
    )
}

"""Problems with the longest reported fits, as files: subjects, doses, few points, weekly counts.

Data come from the models' own solutions at drawn values, with noise of a known size. The measured
concentrations of theophylline come from the tests' data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidence.running.measuring import ROOT

Files = Mapping[str, str]
"""The texts of a problem file and of its data, by name."""

TIMES = (0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 12.0, 24.0)  # of blood samples, in hours
NOISE = 0.15  # standard deviation of a concentration, in mg/L
THEOPHYLLINE = ROOT / "tests" / "data" / "theophylline.csv"

ORAL = """format = 1
name = "{name}"
[ode]
gut = "-ka*gut"
blood = "ka*gut - CL/V*blood"
[observables]
c = "blood/V"
[parameters]
ka = {{ lower = 0.05, upper = 20.0, scale = "log10"{own} }}
CL = {{ lower = 0.1, upper = 100.0, scale = "log10"{own} }}
V = {{ lower = 1.0, upper = 300.0, scale = "log10"{own_volume} }}
{more}[initial]
gut = 0.0
blood = 0.0
[noise]
c = {{ sd = {sd} }}
[[experiment]]
name = "subject {{}}"
data = "data.csv"
by = "ID"
doses = {{ into = "gut"{lag} }}
"""
OWN = ", per_experiment = true"

TWO_COMPARTMENTS = """format = 1
name = "crossover"
[ode]
gut = "-ka*gut"
blood = "ka*gut - (CL*(WT/70)^theta + Q)/V*blood + Q/VP*tissue"
tissue = "Q/V*blood - Q/VP*tissue"
[observables]
c = "blood/V"
[parameters]
ka = { lower = 0.05, upper = 20.0, scale = "log10" }
CL = { lower = 0.1, upper = 100.0, scale = "log10" }
V = { lower = 1.0, upper = 300.0, scale = "log10" }
Q = { lower = 0.1, upper = 100.0, scale = "log10" }
VP = { lower = 1.0, upper = 300.0, scale = "log10" }
theta = { lower = -1.0, upper = 3.0 }
F = { lower = 0.05, upper = 1.0 }
lag = { lower = 0.0, upper = 1.0 }
[initial]
gut = 0.0
blood = 0.0
tissue = 0.0
[noise]
c = { sd = "estimate" }
[[experiment]]
name = "subject {}"
data = "data.csv"
by = "ID"
[experiment.doses]
into = { 1 = "gut", 2 = "blood" }
bioavailability = { gut = "F" }
lag = { gut = "lag" }
"""

OSCILLATION = """format = 1
name = "four points"
[ode]
x = "v"
v = "-w^2*x - c*v"
[parameters]
w = { lower = 0.01, upper = 50.0, scale = "log10" }
c = { lower = 0.0, upper = 5.0 }
[initial]
x = { lower = -2.0, upper = 2.0 }
v = 0.0
[[experiment]]
data = "data.csv"
t0 = 0.0
"""

PENDULUM = """format = 1
name = "pendulum"
[ode]
angle = "speed"
speed = "-g/l*sin(angle) - c*speed"
[observables]
angle = "angle"
[parameters]
g = { lower = 1.0, upper = 100.0 }
l = { lower = 0.1, upper = 10.0 }
c = { lower = 0.0, upper = 5.0 }
[initial]
angle = { lower = -3.2, upper = 3.2 }
speed = { lower = -20.0, upper = 20.0 }
[[experiment]]
data = "data.csv"
t0 = 0.0
"""

OUTBREAK = """format = 1
name = "weekly counts"
[ode]
S = "-beta*S*I/N"
E = "beta*S*I/N - 0.25*E"
I = "0.25*E - gamma*I"
new = "rho*0.25*E"
[definitions]
beta = "if(t < tc, beta1, beta2)"
[constants]
N = 1e6
[observables]
cases = "new"
[parameters]
beta1 = { lower = 0.05, upper = 3.0, scale = "log10" }
beta2 = { lower = 0.05, upper = 3.0, scale = "log10" }
tc = { lower = 14.0, upper = 120.0 }
gamma = { lower = 0.02, upper = 2.0, scale = "log10" }
rho = { lower = 0.01, upper = 1.0, scale = "log10" }
[initial]
S = "N"
E = { lower = 1.0, upper = 10000.0, scale = "log10" }
I = 0.0
new = 0.0
[noise]
cases = { distribution = "negative-binomial", dispersion = "estimate" }
[[experiment]]
data = "data.csv"
t0 = 0.0
[[experiment.event]]
time = 7.0
every = 7.0
until = 140.0
assign = { new = 0.0 }
"""

DEGRADATION = """format = 1
name = "own constants"
[ode]
A = "-k1*A + k2*B"
B = "k1*A - (k2 + k3)*B"
[parameters]
k1 = { lower = 0.001, upper = 100.0, scale = "log10", per_experiment = true }
k2 = { lower = 0.001, upper = 100.0, scale = "log10", per_experiment = true }
k3 = { lower = 0.001, upper = 100.0, scale = "log10", per_experiment = true }
[initial]
A = 1.0
B = 0.0
[[experiment]]
name = "subject {}"
data = "data.csv"
by = "ID"
t0 = 0.0
"""


@dataclass(frozen=True)
class Waiting:
    """A problem by its files, and the requested number of starts; 0 for the default."""

    files: Callable[[], Files]
    starts: int = 0


def swallowed(count: int, *, own_volume: bool, sd: str = f"{NOISE}") -> Files:
    """Return subjects with one oral dose each and individual rates."""
    rng = np.random.default_rng([count, own_volume])
    rows = ["ID,TIME,AMT,DV,EVID"]
    shared = rng.uniform(25.0, 40.0)
    for subject in range(1, count + 1):
        ka, clearance = np.exp(rng.normal(np.log([1.5, 3.0]), 0.3))
        volume = float(np.exp(rng.normal(np.log(32.0), 0.2))) if own_volume else shared
        dose, ke = 100.0 * int(rng.integers(2, 5)), clearance / volume
        times = np.array(TIMES)
        curve = dose * ka / volume / (ka - ke) * (np.exp(-ke * times) - np.exp(-ka * times))
        rows.append(f"{subject},0,{dose:g},.,1")
        values = curve + NOISE * rng.standard_normal(len(times))
        rows += [f"{subject},{t:g},.,{v:.4f},0" for t, v in zip(times, values, strict=True)]
    own = OWN if own_volume else ""
    text = ORAL.format(name="subjects", own=OWN, own_volume=own, sd=sd, more="", lag="")
    return {"problem.toml": text, "data.csv": "\n".join(rows) + "\n"}


def crossover(*, own: bool) -> Files:
    """Return twelve subjects with one dose into the blood and, two days later, a lagged oral dose.

    All unknowns are shared, or absorption, clearance and lag are individual.
    """
    rng = np.random.default_rng([12, own])
    rows = ["ID,TIME,AMT,DV,EVID,CMT,WT"]
    for subject in range(1, 13):
        weight, dose = float(rng.uniform(50.0, 100.0)), 100.0 * int(rng.integers(2, 5))
        spread = np.exp(rng.normal(0.0, 0.3, 3)) if own else np.ones(3)
        ka, clearance, late = spread * [1.2, 4.0 * (weight / 70) ** 0.75, 0.25]
        out, back = 6.0 / 20.0, 6.0 / 45.0
        leaves = clearance / 20.0 + out
        matrix = np.array([[-ka, 0, 0], [ka, -leaves, back], [0, out, -back]])
        rates, vectors = np.linalg.eig(matrix)
        begun = [np.linalg.solve(vectors, d) for d in ([0, dose, 0], [0.7 * dose, 0, 0])]
        rows.append(f"{subject},0,{dose:g},.,1,2,{weight:.1f}")
        rows.append(f"{subject},48,{dose:g},.,1,1,{weight:.1f}")
        for t in (*TIMES, *(48.0 + t for t in TIMES)):
            passed = [t, t - 48.0 - late]
            c = sum(
                float((vectors @ (np.exp(rates * s) * y))[1]) / 20.0
                for s, y in zip(passed, begun, strict=True)
                if s > 0
            )
            value = c + NOISE * rng.standard_normal()
            rows.append(f"{subject},{t:g},.,{value:.4f},0,.,{weight:.1f}")
    text = TWO_COMPARTMENTS
    if own:
        for name in ("ka", "CL", "lag"):
            line = next(line for line in text.splitlines() if line.startswith(f"{name} = "))
            text = text.replace(line, line.replace(" }", OWN + " }"))
        text = text.replace("theta = { lower = -1.0, upper = 3.0 }\n", "")
        text = text.replace("*(WT/70)^theta", "")
    return {"problem.toml": text, "data.csv": "\n".join(rows) + "\n"}


def many_doses() -> Files:
    """Return three measurements after 61 doses, each in a separate record."""
    rng = np.random.default_rng(61)
    ka, clearance, volume = 1.1, 2.5, 30.0
    ke, rows, late = clearance / volume, ["ID,TIME,AMT,DV,EVID"], 0.4
    doses = 12.0 * np.arange(61)
    rows += [f"1,{t:g},100,.,1" for t in doses]
    for t in (730.0, 735.0, 744.0):
        passed = t - doses - late
        each = 100.0 * ka / volume / (ka - ke) * (np.exp(-ke * passed) - np.exp(-ka * passed))
        rows.append(f"1,{t:g},.,{each.sum() + NOISE * rng.standard_normal():.4f},0")
    more, lag = "lag = { lower = 0.0, upper = 2.0 }\n[constants]\nka = 1.1\n", ', lag = "lag"'
    text = ORAL.format(name="many doses", own="", own_volume="", sd=f"{NOISE}", more=more, lag=lag)
    text = text.replace('ka = { lower = 0.05, upper = 20.0, scale = "log10" }\n', "")
    return {"problem.toml": text, "data.csv": "\n".join(rows) + "\n"}


def theophylline() -> Files:
    """Return the twelve subjects of the teaching set, in units per kilogram of weight."""
    text = ORAL.format(
        name="theophylline", own=OWN, own_volume=OWN, sd='"estimate"', more="", lag=""
    )
    for old, new in (
        ("lower = 0.1, upper = 100.0", "lower = 0.001, upper = 1.0"),
        ("lower = 1.0, upper = 300.0", "lower = 0.01, upper = 10.0"),
    ):
        text = text.replace(old, new)
    return {"problem.toml": text, "data.csv": THEOPHYLLINE.read_text(encoding="utf-8")}


def four_points() -> Files:
    """Return four positions of an oscillation with three unknowns."""
    rng = np.random.default_rng(3)
    times = np.array([1.0, 3.0, 5.0, 7.0])
    positions = 0.9 * np.cos(1.3 * times) * np.exp(-0.1 * times) + 0.02 * rng.standard_normal(4)
    rows = [f"{t:g},{x:.5f}" for t, x in zip(times, positions, strict=True)]
    return {"problem.toml": OSCILLATION, "data.csv": "\n".join(["t,x", *rows]) + "\n"}


def pendulum() -> Files:
    """Return twenty angles of a pendulum, two seconds apart."""
    from scipy.integrate import solve_ivp

    rng = np.random.default_rng(2)
    times = np.linspace(1.0, 40.0, 20)

    def rates(_: float, y: Any) -> list[float]:
        return [y[1], -9.0 * np.sin(y[0]) - 0.05 * y[1]]

    angles = solve_ivp(rates, (0.0, 40.0), [2.0, 0.0], t_eval=times, rtol=1e-10, atol=1e-12).y[0]
    values = angles + 0.05 * rng.standard_normal(len(times))
    rows = [f"{t:.5g},{v:.5f}" for t, v in zip(times, values, strict=True)]
    return {"problem.toml": PENDULUM, "data.csv": "\n".join(["t,angle", *rows]) + "\n"}


def weekly_counts() -> Files:
    """Return twenty weekly counts of an epidemic whose contacts fall after 57 days."""
    from scipy.integrate import solve_ivp

    rng = np.random.default_rng(57)
    times = np.linspace(7.0, 140.0, 20)

    def rates(t: float, y: Any) -> list[float]:
        infections = (0.45 if t < 57.0 else 0.18) * y[0] * y[2] / 1e6
        return [-infections, infections - 0.25 * y[1], 0.25 * y[1] - y[2] / 6.0, 0.25 * y[1]]

    course = solve_ivp(
        rates, (0.0, 140.0), [1e6, 150.0, 0.0, 0.0], t_eval=times, max_step=1.0, rtol=1e-9
    )
    means = 0.3 * np.diff(course.y[3], prepend=0.0)
    counts = rng.negative_binomial(20.0, 20.0 / (20.0 + means))
    rows = [f"{t:g},{count}" for t, count in zip(times, counts, strict=True)]
    return {"problem.toml": OUTBREAK, "data.csv": "\n".join(["t,cases", *rows]) + "\n"}


def own_constants() -> Files:
    """Return 32 subjects with three constants each, both states measured."""
    rng = np.random.default_rng(32)
    rows = ["ID,t,A,B"]
    for subject in range(1, 33):
        k1, k2, k3 = np.exp(rng.normal(np.log([1.0, 0.4, 0.3]), 0.3))
        rates, vectors = np.linalg.eig(np.array([[-k1, k2], [k1, -k2 - k3]]))
        begun = np.linalg.solve(vectors, [1.0, 0.0])
        for t in np.linspace(0.5, 10.0, 10):
            a, b = (vectors @ (np.exp(rates * t) * begun)) + 0.01 * rng.standard_normal(2)
            rows.append(f"{subject},{t:.4g},{a:.5f},{b:.5f}")
    return {"problem.toml": DEGRADATION, "data.csv": "\n".join(rows) + "\n"}


PROBLEMS: Mapping[str, Waiting] = {
    "12 subjects pooled": Waiting(lambda: crossover(own=False)),
    "12 subjects, V in common": Waiting(lambda: crossover(own=True)),
    "14 subjects, 42 unknowns": Waiting(lambda: swallowed(14, own_volume=True)),
    "14 subjects, 42 unknowns and an sd": Waiting(
        lambda: swallowed(14, own_volume=True, sd='"estimate"')
    ),
    "24 subjects, V and an sd in common": Waiting(
        lambda: swallowed(24, own_volume=False, sd='"estimate"')
    ),
    "40 subjects, 120 unknowns": Waiting(lambda: swallowed(40, own_volume=True)),
    "32 subjects, own constants": Waiting(own_constants),
    "theophylline's twelve and an sd": Waiting(theophylline),
    "3 points after 61 doses": Waiting(many_doses),
    "4 points": Waiting(four_points),
    "pendulum, 20 values": Waiting(pendulum),
    "pendulum, 20 values, 60 starts": Waiting(pendulum, starts=60),
    "20 weekly counts, 60 starts": Waiting(weekly_counts, starts=60),
}


def written(name: str, folder: Path) -> Path:
    """Write the files of a problem into a folder, and return the problem file."""
    for file, text in PROBLEMS[name].files().items():
        (folder / file).write_text(text, encoding="utf-8")
    return folder / "problem.toml"

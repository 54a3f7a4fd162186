"""Problem files that are right."""

DECAY = """format = 1
[ode]
x = "-k*x"
[parameters]
k = {}
[initial]
x = 1.0
[[experiment]]
data = "data.csv"
"""

FULL = """format = 1
name = "full"
description = "everything at once"
time_unit = "h"

[ode]
gut = "-ka*gut"
x = "ka*gut - k*x*z + u + k12"

[algebraic]
z = "z - 1/(1 + x)"

[observables]
y1 = "x/V"
y2 = "gut"

[constants]
V = 10.0

[inputs]
u = { interpolation = "cubic" }

[parameters]
ka = { lower = 0.0, upper = 10, guess = 0.1, scale = "linear", unit = "1/h" }
k = { lower = 1e-3, scale = "log10", per_experiment = true, prior = { mean = 1.0, sd = 0.2 } }
k_mutant = { fixed = 0.3 }
sigma = {}

[initial]
gut = { lower = 0.0, upper = 100.0 }
x = "2*ka"
z = 1.0

[noise]
y1 = { sd = "sigma*y1", transform = "log10" }
y2 = { relative = 0.05 }

[[experiment]]
name = "wild type"
data = "one.csv"
t0 = 0.0
constants = { k12 = 1 }

[[experiment.event]]
times = [24, 12.0]
assign = { gut = "gut + 100", V = "2*V" }

[[experiment.event]]
time = 12
assign = { x = 0 }

[[experiment]]
data = "two.csv"
initial = { x = 1.0, gut = { lower = 1 } }
constants = { V = 20, k12 = "k_mutant" }
"""

FULL_DATA = {
    "one.csv": "t,y1,y2,u\n0,1,2,0\n1,2,,0\n2,3,1,1\n",
    "two.csv": "t;y1;y1_sd;u\n5;1;0.1;1\n6;2;0.2;1\n",
}

"""
Fit with measurements that were not fitted
==========================================

Measurements kept apart are open squares: does the model foresee them?
"""

import odefit

times = [0.25, 0.57, 1.12, 2.02, 3.82, 5.10, 7.03, 9.05, 12.12, 24.37]
concentrations = [2.84, 6.57, 10.50, 9.66, 8.58, 8.36, 7.47, 6.89, 5.94, 3.28]
problem = odefit.Problem(
    odefit.Model(
        ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"}
    ),
    data={"t": times[:7], "c": concentrations[:7]},
    parameters={"ka": {"lower": 0.5, "upper": 9.0}, "ke": {"lower": 0.01, "upper": 0.3}, "V": {}},
    initial={"gut": 4.02, "blood": 0.0},
    t0=0.0,
    time_unit="h",
)
result = odefit.fit(problem, seed=1)
result.plot_fit(validation={"t": times[7:], "c": concentrations[7:]})

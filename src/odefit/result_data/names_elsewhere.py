"""Names by which users of lmfit, SciPy and others look for parts of a result."""

from __future__ import annotations

from collections.abc import Mapping

CI, STDERR = 'result.params["k"].ci, or result.profile()', 'result.params["k"].stderr'

NAMES_HERE: Mapping[str, str] = {
    "best_values": "result.params.valuesdict()", "values": "result.params.valuesdict()",
    "fit_report": "print(result)", "ci_report": "print(result)",
    "popt": "result.x", "pcov": "result.covar",
    "perr": STDERR, "stderr": STDERR, "errors": STDERR,
    "conf_interval": CI, "confidence_intervals": CI,
    "fun": "result.objective", "cost": "result.objective", "sse": "result.objective",
    "residual": "result.residuals", "best_fit": "result.simulate()",
    "eval": "result.simulate(times)", "plot": "result.plot_fit()",
    "init_values": 'result.params["k"].init_value', "correlation": 'result.params["k"].correl',
}  # fmt: skip
"""Attributes of a result by the names that lmfit, SciPy and others give them."""

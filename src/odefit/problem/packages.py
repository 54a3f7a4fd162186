"""Packages that a fit does not need: their absence is told in one sentence."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from odefit.problem.errors import InputError

PURPOSES = {
    "arviz": "samples of the posterior",
    "jinja2": "reports",
    "libsbml": "SBML models",
    "loky": "several processes",
    "matplotlib": "figures and reports",
    "nutpie": "samples of the posterior",
    "pandas": "tables as data frames",
    "yaml": "PEtab problems",
}
"""Packages without which everything else works, and what they are for."""

INSTALLED_AS = {
    "arviz": "odefit[posterior]",
    "libsbml": "odefit[petab]",
    "nutpie": "odefit[posterior]",
    "yaml": "odefit[petab]",
}
"""What to install for packages that come as an extra of odefit."""


def require(package: str) -> None:
    """Refuse to go on without one of :data:`PURPOSES`.

    Raises
    ------
    InputError
        The package cannot be imported; the message says what for, why, and how to install it.
    """
    try:
        import_module(package)
    except ImportError as error:
        raise InputError(
            f"{PURPOSES[package]} need the package {package}, which cannot be imported ({error}); "
            f"install it with 'pip install {INSTALLED_AS.get(package, package)}'"
        ) from None


def installed(package: str) -> bool:
    """Whether a package is there, without the time that it takes to import it."""
    try:
        return find_spec(package) is not None
    except ValueError:  # it is kept from being imported
        return False

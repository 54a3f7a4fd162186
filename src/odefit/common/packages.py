"""Versions of packages, and the message about an optional package that is missing."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from odefit.common.errors import InputError

PURPOSES = {
    "SALib": "global sensitivity analyses",
    "antimony": "models in Antimony",
    "arviz": "samples of the posterior",
    "distributed": "Dask clusters",
    "flint": "verifications of certificates",
    "jinja2": "reports",
    "libsbml": "SBML models",
    "loky": "several processes",
    "matplotlib": "figures and reports",
    "nutpie": "samples of the posterior",
    "pandas": "tables as data frames",
    "pint": "units",
    "python_calamine": "workbooks",
    "starlette": "pages of odefit explore",
    "tomlkit": "guesses written to problem files",
    "uvicorn": "pages of odefit explore",
    "yaml": "PEtab problems",
}
"""Optional packages, and their purposes."""

INSTALLED_AS = {
    "SALib": "odefit[sensitivity]",
    "antimony": "odefit[antimony]",
    "arviz": "odefit[posterior]",
    "distributed": "odefit[distributed]",
    "flint": "odefit[certificates]",
    "libsbml": "odefit[petab]",
    "nutpie": "odefit[posterior]",
    "pint": "odefit[units]",
    "python_calamine": "odefit[excel]",
    "starlette": "odefit[explore]",
    "tomlkit": "odefit[explore]",
    "uvicorn": "odefit[explore]",
    "yaml": "odefit[petab]",
}
"""The extras of odefit that install some packages."""


def require(package: str) -> None:
    """Raise an InputError, with the remedy, unless a package can be imported."""
    try:
        import_module(package)
    except ImportError as error:
        remedy = f"install it with 'pip install {INSTALLED_AS.get(package, package)}'"
        if not isinstance(error, ModuleNotFoundError) and installed(package):
            remedy = "it is installed: is there enough memory?"
        raise InputError(
            f"{PURPOSES[package]} need the package {package}, which cannot be imported ({error}); "
            f"{remedy}"
        ) from None


def installed(package: str) -> bool:
    """True if a package is installed, without the time of an import."""
    try:
        return find_spec(package) is not None
    except ValueError:  # its import is blocked
        return False


@cache
def installed_version(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def numeric_versions() -> dict[str, str]:
    """Return the versions of packages that affect numerical results, "none" for missing ones."""
    packages = ("odefit", "numpy", "scipy", "heyoka", "casadi", "llvmlite")
    return {name: installed_version(name) or "none" for name in packages}

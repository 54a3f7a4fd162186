"""Names of packages are those of their modules, and unknown ones are refused as by Python."""

from __future__ import annotations

from importlib import import_module

import pytest

PACKAGES = ["odefit.methods", "odefit.problem", "odefit.simulation"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_is_there(package: str) -> None:
    found = import_module(package)
    for name in found.__all__:
        assert getattr(found, name).__module__.startswith("odefit.")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there_is_refused(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Modle'"):
        import_module(package).Modle  # noqa: B018

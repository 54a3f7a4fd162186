"""Packages that a fit does not need: without them all else works, and the rest is told."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import odefit
from odefit.common.packages import INSTALLED_AS, PURPOSES, require
from tests.simulation.test_missing_engines import without

HARMONIC = str(odefit.library.path("harmonic"))


def test_the_message_names_the_purpose_and_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package, purpose in PURPOSES.items():
        if find_spec(package) is not None:
            require(package)
        with monkeypatch.context() as hidden:
            hidden.setitem(sys.modules, package, None)
            name = INSTALLED_AS.get(package, package)
            remedy = re.escape(f"install it with 'pip install {name}'")
            with pytest.raises(odefit.InputError, match=f"{purpose} need .*{package}.*; {remedy}"):
                require(package)


def test_a_package_that_is_installed_but_cannot_be_loaded_need_not_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit of the address space fails the load of a library, which is an ImportError."""

    def fails(_: str) -> None:
        raise ImportError("libx.so: failed to map segment from shared object")

    monkeypatch.setattr("odefit.common.packages.import_module", fails)
    with pytest.raises(odefit.InputError, match=r"failed to map.*is there enough memory\?"):
        require("pandas")


@pytest.mark.slow
def test_the_command_line_fits_and_tables_and_figures_are_refused(tmp_path: Path) -> None:
    found = tmp_path / "result.json"
    code = f"""
from odefit.cli import main
arguments = ['fit', {HARMONIC!r}, '--json', {str(found)!r}, '--jobs', '1', '--starts', '2']
status = main(arguments)
print('END OF THE FIT')
problem = odefit.load({HARMONIC!r})
result = odefit.load_result({str(found)!r})
makers = [
    lambda: result.parameters, lambda: result.simulate([1.0]), problem.data,
    lambda: odefit.identifiability(problem).table,
    result.plot_fit, result.plot_residuals, result.plot_starts, result.plot_parameters,
    result.plot_correlation, result.plot_bounds, lambda: result.report("never.html"),
]
for make in makers:
    try:
        make()
    except odefit.InputError as error:
        print(error)
sys.exit(status)
"""
    run = without(*PURPOSES, code=code)
    assert run.returncode == 0, run.stderr
    assert odefit.load_result(found).best.parameters["p1"] == pytest.approx(9.8)
    lines = run.stdout.partition("END OF THE FIT\n")[2].splitlines()
    assert sum("pip install pandas" in line for line in lines) == 4
    assert sum("pip install matplotlib" in line for line in lines) == 7
    assert len(lines) == 11


@pytest.mark.slow
def test_an_unwritable_report_is_refused_before_the_fit(tmp_path: Path) -> None:
    report = str(tmp_path / "report.html")
    code = (
        "from odefit.cli import main\n"
        f"sys.exit(main(['fit', {HARMONIC!r}, '--report', {report!r}]))"
    )
    run = without("matplotlib", code=code)
    assert run.returncode == 2
    assert run.stdout == ""
    assert "error: figures and reports need the package matplotlib" in run.stderr
    assert "pip install matplotlib" in run.stderr


@pytest.mark.slow
def test_without_loky_there_is_one_process_and_more_are_refused() -> None:
    code = f"""
problem = odefit.load({HARMONIC!r})
print(odefit.fit(problem, odefit.MultiStart(starts=1)).status.value)
try:
    odefit.fit(problem, jobs=2)
except odefit.InputError as error:
    print(error)
"""
    run = without("loky", code=code)
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.splitlines()
    assert first == "converged"
    assert "several processes need the package loky" in second


@pytest.mark.slow
def test_the_library_is_loaded_without_pandas() -> None:
    """All of it: other data sets, samples and noise."""
    code = (
        "for name in ('mammillary-3-p', 'sir'):\n"
        "    known = odefit.library.reference(name)\n"
        "    odefit.library.load(name, dataset=known.datasets - 1)\n"
        "    for samples in known.samples:\n"
        "        odefit.library.load(name, samples=samples, noise=0.1, seed=1)\n"
        "print('pandas' in sys.modules)"
    )
    run = without(code=code)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "False\n"

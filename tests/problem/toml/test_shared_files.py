"""Two experiments that take the same measurements are pointed out."""

from __future__ import annotations

from pathlib import Path

import pytest

from odefit.problem import InputError, load

START = """format = 1
[ode]
x = "-k*x"
[parameters]
k = { lower = 0.0 }
[initial]
x = 10.0
"""


def warnings(folder: Path, *experiments: str, names: str = "t,x,x2") -> tuple[str, ...]:
    (folder / "d.csv").write_text(f"{names}\n0,10,9\n1,6,5\n2,4,3\n", encoding="utf-8")
    text = START + "".join(f"[[experiment]]\n{keys}\n" for keys in experiments)
    (folder / "p.toml").write_text(text, encoding="utf-8")
    return load(folder / "p.toml").warnings


@pytest.mark.parametrize("second", ['data = "d.csv"', 'data = "./d.csv"\ninitial = { x = 5.0 }'])
def test_a_file_that_two_experiments_name_is_pointed_out(tmp_path: Path, second: str) -> None:
    told = "\n".join(warnings(tmp_path, 'name = "cold"\ndata = "d.csv"', second))
    assert '[[experiment]] "experiment 2" data: ' in told
    assert 'd.csv\' has the measurements of [[experiment]] "cold", too, so each' in told
    assert "counts twice; name the file of this experiment, or its columns" in told


def test_other_columns_of_one_file_are_other_measurements(tmp_path: Path) -> None:
    columns = ['data = "d.csv"\ncolumns = { x = "a" }', 'data = "d.csv"\ncolumns = { x = "b" }']
    told = warnings(tmp_path, *columns, names="t,a,b")
    assert not any("counts twice" in w for w in told)


def test_the_only_time_of_all_values_is_not_t0(tmp_path: Path) -> None:
    """The case one-point-no-t0."""
    data = "data = { t = [2.0], x = [3.7] }"
    with pytest.raises(InputError) as caught:
        warnings(tmp_path, data)
    (message,) = caught.value.messages
    assert "every value is measured at t = 2, the first time, which counts as t0" in message
    assert message.endswith("give the time at which the initial values hold, such as t0 = 0.0")
    assert warnings(tmp_path, f"{data}\nt0 = 0.0") == ()
    assert warnings(tmp_path, f"{data}\nsteady_state = true") == ()

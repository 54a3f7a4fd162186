"""PEtab problems become problems of format 1; mistakes are told with file and row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from odefit.common.errors import InputError
from odefit.formats.petab import read_petab
from odefit.formats.petab.tables import Row

MODEL = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1">
  <model id="conversion">
    <listOfCompartments><compartment id="c" size="2" constant="true"/></listOfCompartments>
    <listOfSpecies>
      <species id="A" compartment="c" initialConcentration="1" hasOnlySubstanceUnits="false"
        boundaryCondition="false" constant="false"/>
      <species id="B" compartment="c" initialConcentration="0" hasOnlySubstanceUnits="false"
        boundaryCondition="false" constant="false"/>
    </listOfSpecies>
    <listOfParameters>
      <parameter id="k1" value="0.5" constant="true"/>
      <parameter id="k2" value="0.25" constant="true"/>
    </listOfParameters>
    <listOfReactions>
      <reaction id="r" reversible="false" fast="false">
        <listOfReactants><speciesReference species="A" stoichiometry="1" constant="true"/>
        </listOfReactants>
        <listOfProducts><speciesReference species="B" stoichiometry="1" constant="true"/>
        </listOfProducts>
        <kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML"><apply><times/>
          <ci>c</ci><ci>k1</ci><ci>A</ci></apply></math></kineticLaw>
      </reaction>
    </listOfReactions>
  </model>
</sbml>
"""

FILES = {
    "model.xml": MODEL,
    "problem.yaml": (
        "format_version: 1\nparameter_file: parameters.tsv\nproblems:\n"
        "- condition_files: [conditions.tsv]\n  measurement_files: [measurements.tsv]\n"
        "  observable_files: [observables.tsv]\n  sbml_files: [model.xml]\n"
    ),
    "parameters.tsv": (
        "parameterId\tparameterScale\tlowerBound\tupperBound\tnominalValue\testimate\n"
        "k1\tlog10\t0.001\t10\t0.5\t1\nscale_1\tlin\t0\t10\t2\t1\nscale_2\tlin\t0\t10\t3\t1\n"
        "k2\tlin\t0\t1\t0.25\t0\n"
    ),
    "conditions.tsv": "conditionId\tA\nusual\t\ndouble\t2\n",
    "observables.tsv": (
        "observableId\tobservableFormula\tnoiseFormula\n"
        "product\tobservableParameter1_product*B\tnoiseParameter1_product\n"
    ),
    "measurements.tsv": (
        "observableId\tsimulationConditionId\ttime\tmeasurement\tobservableParameters\t"
        "noiseParameters\n"
        "product\tusual\t1\t0.8\tscale_1\t0.1\nproduct\tusual\t2\t1.2\tscale_1\t0.2\n"
        "product\tdouble\t1\t2.3\tscale_2\t0.1\nproduct\tdouble\t1\t2.4\tscale_2\t0.1\n"
    ),
}


def write(folder: Path, **changes: tuple[str, str]) -> Path:
    """Write the problem, with a text replaced in files by their first names."""
    for name, text in FILES.items():
        old, new = changes.get(name.partition(".")[0], ("", ""))
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1) if old else text, encoding="utf-8")
    return folder / "problem.yaml"


def test_a_problem_is_read(tmp_path: Path) -> None:
    found = read_petab(write(tmp_path))
    problem = found.problem
    assert problem.keys == ("k1", "scale_1", "scale_2")
    assert found.nominal == {"k1": 0.5, "scale_1": 2.0, "scale_2": 3.0}
    assert [c.name for c in problem.conditions] == ["usual", "double"]
    assert [c.initial["A"] for c in problem.conditions] == [1.0, 2.0]
    assert problem.parameters["k1"].scale == "log10"
    assert problem.parameters["k1"].guess is None
    first, second = problem.conditions
    np.testing.assert_array_equal(first.series["product"].values, [0.8, 1.2])
    assert first.series["product"].sds is not None
    np.testing.assert_array_equal(first.series["product"].sds, [0.1, 0.2])
    np.testing.assert_array_equal(second.series["product"].values, [2.3, 2.4])  # replicates
    assert [row.time for _, _, row in found.rows] == [1.0, 2.0, 1.0, 1.0]


def test_a_problem_is_named_by_its_file_or_after_it(tmp_path: Path) -> None:
    assert read_petab(write(tmp_path)).problem.name == "problem"
    named = write(tmp_path, problem=("format_version: 1", "format_version: 1\nproblem_id: decay"))
    assert read_petab(named).problem.name == "decay"


def test_nominal_values_are_guesses_on_request(tmp_path: Path) -> None:
    problem = read_petab(write(tmp_path), nominal=True).problem
    assert problem.parameters["k1"].guess == 0.5


def test_a_nominal_value_outside_its_bounds_is_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, parameters=("10\t0.5", "0.1\t0.5"))
    problem = read_petab(path, nominal=True).problem
    assert problem.parameters["k1"].guess is None
    assert any("0.5 of k1 is outside its bounds" in note for note in problem.notes)


def test_differing_placeholders_make_several_observables(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, measurements=("1.2\tscale_1", "1.2\tscale_2"))
    problem = read_petab(path).problem
    assert list(problem.model.observables) == ["product_1", "product_2"]
    assert problem.model.observables["product_2"].names == {"scale_2", "B"}
    assert any("product becomes 2" in note for note in problem.notes)


def test_more_experiments_than_a_problem_file_may_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100,000 conditions took minutes and 1.3 GB."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(read_petab(tmp_path / "problem.yaml").mapping["experiment"]) == 2
    monkeypatch.setattr("odefit.formats.petab.reading.MAX_EXPERIMENTS", 1)
    with pytest.raises(
        InputError, match=r"problem\.yaml: experiments: there are more experiments than 10000"
    ):
        read_petab(tmp_path / "problem.yaml")


def test_experiments_are_counted_before_tables_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200,000 conditions took 451 MB, as the rows of all tables were kept before they counted."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("odefit.formats.petab.tables.MAX_EXPERIMENTS", 1)
    rows: list[Row] = []

    def row(cells: dict[str, str], place: str) -> Row:
        rows.append(Row(cells, place))
        return rows[-1]

    monkeypatch.setattr("odefit.formats.petab.tables.Row", row)
    with pytest.raises(InputError, match=r"measurements\.tsv: there are more experiments than 10"):
        read_petab(tmp_path / "problem.yaml")
    measured = FILES["measurements.tsv"].splitlines()[1:]
    assert 0 < len(rows) < len(measured)  # and none of the other tables


def test_conditions_without_measurements_count_for_no_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    more = "".join(f"idle{i}\t{i}\n" for i in range(9))
    (tmp_path / "conditions.tsv").write_text(FILES["conditions.tsv"] + more, encoding="utf-8")
    monkeypatch.setattr("odefit.formats.petab.tables.MAX_EXPERIMENTS", 2)
    assert len(read_petab(tmp_path / "problem.yaml").mapping["experiment"]) == 2


def test_a_table_with_too_many_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200,000 measurements took 6 s and 340 MB."""
    monkeypatch.setattr("odefit.formats.petab.tables.MAX_PETAB_ROWS", 2)
    with pytest.raises(InputError, match=r"tsv: has \d+ rows, and 2 are read at most"):
        read_petab(write(tmp_path))


def test_a_few_of_many_conditions_without_measurements_are_named(tmp_path: Path) -> None:
    """The names of 190,000 made a note of 1.6 MB, whose printing did not end."""
    more = "".join(f"idle{i}\t{i}\n" for i in range(1000))
    path = write(tmp_path)
    table = tmp_path / "conditions.tsv"
    table.write_text(FILES["conditions.tsv"] + more, encoding="utf-8")
    notes = " ".join(read_petab(path).problem.notes)
    assert "There are no measurements under the conditions idle0, idle1," in notes
    assert "idle7 and 992 more." in notes


def test_a_compartment_keeps_the_amounts_when_a_condition_changes_it(tmp_path: Path) -> None:
    path = write(tmp_path, conditions=("conditionId\tA\nusual\t\n", "conditionId\tc\nusual\t4\n"))
    problem = read_petab(path).problem
    assert problem.condition("usual").scalars.get("c", 4.0) == 4.0


MISTAKES = [
    ("parameters", ("k1\tlog10", "k1\tlog2"), "parameters.tsv, line 2: parameterScale: unknown"),
    ("parameters", ("0.001", "-1"), "line 2: parameterScale log10 needs a positive lowerBound"),
    ("parameters", ("0.001\t10", "20\t10"), "line 2: lowerBound 20 is above upperBound 10"),
    ("parameters", ("0.5\t1", "0.5\t2"), "line 2: estimate: expected 0 or 1, got 2"),
    ("parameters", ("scale_2\t", "scale_1\t"), "line 4: parameterId 'scale_1' occurs twice"),
    ("parameters", ("0.25\t0", "\t0"), "line 5: nominalValue is empty"),
    ("parameters", ("k2\t", "A\t"), "line 5: A is a state of the model"),
    ("parameters", ("parameterScale", "parameterscale"), "parameters.tsv: there is no column"),
    ("conditions", ("conditionId\tA", "conditionId\tX"), "there is no 'X' in the model"),
    ("conditions", ("conditionId\tA", "conditionId\tdate"), "there is no 'date' in the model"),
    ("conditions", ("\tA\nusual\t\ndouble\t2", "\tscale1\nusual\t\ndouble\tx"), "no 'scale1' in"),
    ("conditions", ("\tA\nusual\t\ndouble\t2", "\tdose\nusual\tx\ndouble\tk1"), "no 'dose' in"),
    ("conditions", ("double\t2", "double\tfoo"), "unknown name 'foo' in 'foo'"),
    ("conditions", ("conditionId\tA", "conditionId\tk1"), "'k1' is in the parameter table"),
    ("observables", ("*B", "*C"), "observables.tsv, line 2: unknown name 'C'"),
    ("observables", ("*B", "*(B"), "observables.tsv, line 2"),
    ("measurements", ("product\tusual\t1", "producta\tusual\t1"), "there is no observable 'prod"),
    (
        "measurements",
        ("usual\t1", "usua\t1"),
        "there is no condition 'usua' in the condition table",
    ),
    ("measurements", ("scale_1\t", "scale_9\t"), "line 2: observableParameters: 'scale_9' is nei"),
    ("measurements", ("scale_1\t", "scale_1;2\t"), "product has 1 placeholders"),
    ("measurements", ("\t0.8", "\tx"), "line 2: measurement: expected a finite number, got 'x'"),
    ("measurements", ("usual\t1", "usual\t-1"), "line 2: time: measurements begin at time 0"),
    ("problem", ("format_version: 1", "format_version: 3"), "odefit reads PEtab versions 1 and"),
    ("problem", ("format_version: 1\n", ""), "format_version: missing"),
    ("problem", ("sbml_files: [model.xml]", "sbml_files: []"), "sbml_files: expected one file"),
    ("problem", ("model.xml", "https://x.org/m.xml"), "is an address"),
    ("problem", ("conditions.tsv", "other.tsv"), "other.tsv"),
    ("problem", ("condition_files", "conditions_files"), "unknown key"),
    ("problem", ("format_version: 1", "format_version: &a 1\nproblem_id: *a"), "aliases"),
    ("problem", ("problems:", "problems: ["), "problem.yaml"),
    ("model", ("</sbml>", ""), "model.xml"),
]


@pytest.mark.parametrize(
    ("file", "change", "message"), MISTAKES, ids=[m[2][-30:] for m in MISTAKES]
)
def test_a_mistake_is_reported_with_its_place(
    tmp_path: Path, file: str, change: tuple[str, str], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_petab(write(tmp_path, **{file: change}))
    assert any(message in text for text in caught.value.messages), caught.value.messages

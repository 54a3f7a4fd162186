"""Files that are far larger, deeper or more numerous in parts than usual.

Each kind makes a file of a size in a folder. It also names the command that reads the file, and
whether that command has to refuse it (2) or may accept it (0).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Text = Callable[[int], str]
RESULT = "stored.json"  # a result that lies beside the files
MOST_SECONDS = 10.0  # processor time
MOST_TIMES, MOST_BYTES = 20, 2e8  # memory limit: times the size, plus bytes
KERNELS = 3e8  # bytes of engines and of the compiler of their kernels


@dataclass(frozen=True)
class Kind:
    """A kind of file that grows with a number."""

    text: Text
    name: str  # of the file
    call: Sequence[str] = ("check",)  # the command; the name of the file is added to it
    statuses: Sequence[int] = (2,)
    sizes: tuple[int, int] = (110_000, 200_000)  # between which the number is drawn
    integrates: bool = False  # whether the command loads the compiler of kernels
    # parts of an archive that all contain the text; without parts the file is the text itself
    parts: Sequence[str] = ()
    beside: Mapping[str, Text] = field(default_factory=dict)  # further files by name

    def write(self, folder: Path, number: int) -> Path:
        """Write the file and those beside it; return its path."""
        path, text = folder / self.name, self.text(number)
        if self.parts:
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for part in self.parts:
                    archive.writestr(part, text)
            path.write_bytes(packed.getvalue())
        else:
            path.write_text(text, encoding="utf-8")
        for name, of in self.beside.items():
            (folder / name).write_text(of(number), encoding="utf-8")
        return path


def problem(head: Text) -> Kind:
    """Return a problem file that is refused."""
    return Kind(lambda n: f"format = 1\n{head(n)}", "hostile.toml")


def table(text: Text) -> Kind:
    """Return a table of measurements that is refused."""
    return Kind(text, "hostile.csv", ("new",))


def xml(text: Text, **more: object) -> Kind:
    """Return a model in SBML."""
    return Kind(lambda n: f'<?xml version="1.0"?>{text(n)}', "hostile.xml", **more)  # type: ignore[arg-type]


def _equation(right: str, unknowns: Sequence[str]) -> str:
    bounds = "\n".join(f"{name} = [0.1, 1]" for name in unknowns)
    data = '[[experiment]]\ndata = "small.csv"\n'
    return f'format = 1\n[ode]\nx = "{right}"\n[parameters]\n{bounds}\n[initial]\nx = 0.1\n{data}'


def large_formula(term: Callable[[int], str], join: str, many: bool = False) -> Kind:
    """Return a problem whose equation has this number of terms or factors."""

    def text(n: int) -> str:
        names = [f"k{i}" for i in range(n)] if many else ["k"]
        return _equation(join.join(term(i) for i in range(n)), names)

    return Kind(text, "hostile.toml", statuses=(0,), sizes=(300, 1000), integrates=True)


_SBML = '<sbml xmlns="http://www.sbml.org/sbml/level3/version2/core" level="3" version="2">'
_ENTITIES = '<!DOCTYPE x [<!ENTITY a0 "ha">'
_PETAB = {
    "parameters.tsv": lambda n: (
        "parameterId\tparameterScale\tlowerBound\tupperBound\tnominalValue"
        "\testimate\nk\tlin\t0.1\t1\t0.5\t1\n"
    ),
    "observables.tsv": lambda n: "observableId\tobservableFormula\tnoiseFormula\ny\tx\t0.1\n",
    "conditions.tsv": lambda n: "conditionId\tx\n" + "".join(f"c{i}\t{i}\n" for i in range(n)),
    "measurements.tsv": lambda n: (
        "observableId\tsimulationConditionId\tmeasurement\ttime\n"
        + "".join(f"y\tc{i}\t1\t1\n" for i in range(n))
    ),
    "model.xml": lambda n: (
        f'<?xml version="1.0"?>{_SBML}<model id="m"><listOfCompartments>'
        '<compartment id="c" size="1" spatialDimensions="3" constant="true"/></listOfCompartments>'
        '<listOfSpecies><species id="x" compartment="c" initialConcentration="1" '
        'hasOnlySubstanceUnits="false" boundaryCondition="false" constant="false"/></listOfSpecies>'
        '<listOfParameters><parameter id="k" value="0.5" constant="true"/></listOfParameters>'
        "</model></sbml>"
    ),
}


def _petab_yaml(_: int) -> str:
    names = {n.split(".")[0]: n for n in _PETAB}
    return (
        f"format_version: 1\nparameter_file: {names['parameters']}\nproblems:\n"
        f"- condition_files: [{names['conditions']}]\n"
        f"  measurement_files: [{names['measurements']}]\n"
        f"  observable_files: [{names['observables']}]\n  sbml_files: [{names['model']}]\n"
    )


def _reactions(n: int) -> str:
    one = (
        '<reaction id="r{0}" reversible="false"><listOfReactants><speciesReference species="x" '
        'stoichiometry="1" constant="true"/></listOfReactants></reaction>'
    )
    inside = "".join(one.format(i) for i in range(n))
    return f'{_SBML}<model id="m"><listOfReactions>{inside}</listOfReactions></model></sbml>'


KINDS: Mapping[str, Kind] = {
    "parts of a key": problem(lambda n: ".".join("a" * n) + " = 1"),
    "nested lists": problem(lambda n: f"z = {'[' * n}"),
    "unknown keys": problem(lambda n: "\n".join(f"k{i} = 1" for i in range(n))),
    "experiments": problem(lambda n: '[[experiment]]\ndata = "d.csv"\n' * n),
    "columns": table(lambda n: ",".join(["t", *(f"c{i}" for i in range(n))]) + "\n0,1\n"),
    "rows": table(lambda n: "t,y\n" + "0,1\n" * (10 * n)),
    "quoted cell": table(lambda n: 't,y\n0,"' + "x" * (20 * n)),
    "zero bytes": table(lambda n: "t,y\n0,1\n" + "\0" * n),
    "aliases": Kind(
        lambda n: (
            "a0: &a0 [1]\n"
            + "\n".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, n % 40 + 40))
        ),
        "hostile.yaml",
    ),
    "nested flow": Kind(lambda n: "a: " + "[" * n, "hostile.yaml"),
    "nested JSON": Kind(
        lambda n: '{"format": 1, "problem": ' + "[" * (10 * n), "hostile.json", ("show",)
    ),
    "repeated keys": Kind(
        lambda n: "{" + ",".join('"format": 1' for _ in range(n)) + "}", "hostile.json", ("show",)
    ),
    "entities": xml(
        lambda n: (
            _ENTITIES
            + "".join(f'<!ENTITY a{i} "&a{i - 1};&a{i - 1};">' for i in range(1, n % 40 + 40))
            + "]><sbml>&a39;</sbml>"
        )
    ),
    "external entity": xml(
        lambda n: '<!DOCTYPE x [<!ENTITY a SYSTEM "small.csv">]><sbml>' + "&a;" * n + "</sbml>"
    ),
    "inclusions": xml(
        lambda n: (
            f'{_SBML}<model id="m">'
            + '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="small.csv"/>' * n
            + "</model></sbml>"
        )
    ),
    "nested elements": xml(lambda n: "<sbml>" + "<a>" * n),
    "reactions": xml(_reactions),
    "conditions of PEtab": Kind(_petab_yaml, "hostile.yaml", beside=_PETAB),
    "deep expressions": Kind(
        lambda n: _equation("(" * n + "x" + " + k)^2" * n, ["k"]),
        "hostile.toml",
        statuses=(0,),
        sizes=(20, 80),
        integrates=True,
    ),
    "blown workbook": Kind(
        lambda n: " " * (1000 * n),
        "hostile.xlsx",
        ("new",),
        parts=("[Content_Types].xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml"),
    ),
    "blown archive": Kind(
        lambda n: " " * (1000 * n), "hostile.omex", parts=("manifest.xml", "model.xml")
    ),
    "scenario of keys": Kind(
        lambda n: "\n".join(f"k{i} = 1" for i in range(n)),
        "hostile.toml",
        ("predict", RESULT, "--scenario"),
    ),
    "scenario of rows": Kind(
        lambda n: "time,amt\n" + "".join(f"{i},1\n" for i in range(10 * n)),
        "hostile.csv",
        ("predict", RESULT, "--scenario"),
    ),
    "validation of columns": Kind(
        lambda n: ",".join(["t", *(f"c{i}" for i in range(n))]) + "\n0,1\n",
        "hostile.csv",
        ("validate", RESULT),
    ),
    "validation without numbers": Kind(
        lambda n: "t,x\n" + "0,nan\n" * n, "hostile.csv", ("validate", RESULT)
    ),
    "sum of sines": large_formula(lambda i: f"sin({i + 1}*k*x)", " + "),
    "sum of sines of unknowns": large_formula(lambda i: f"sin(k{i}*x)", " + ", many=True),
    "product of factors": large_formula(lambda i: f"(1 + k{i}*x)", " * ", many=True),
    "sum of Hill terms": large_formula(lambda i: f"x^{i % 4 + 1}/(x^{i % 4 + 1} + k)", " + "),
    "sum of unknowns": large_formula(lambda i: f"k{i}", " + ", many=True),
}
"""Kinds by name."""

"""A package of SBML that is declared is no obstacle; what changes the meaning of a model is."""

from __future__ import annotations

import pytest

import odefit
from odefit.problem.sbml import read_sbml
from tests.problem.sbml.texts import compartment, listed, math, parameter, rule, sbml, species

PACKAGES = [
    "arrays", "comp", "distrib", "dyn", "fbc", "groups", "l3v2extendedmath", "layout", "multi",
    "qual", "render", "spatial",
]  # fmt: skip
DEFINED = (
    '<comp:listOfModelDefinitions><comp:modelDefinition id="d"><comp:listOfSubmodels>'
    '<comp:submodel comp:id="s" comp:modelRef="e"/></comp:listOfSubmodels></comp:modelDefinition>'
    "</comp:listOfModelDefinitions>"
)
SUBMODEL = (
    '<comp:listOfSubmodels><comp:submodel comp:id="s" comp:modelRef="d"/></comp:listOfSubmodels>'
)
NORMAL = (
    '<apply><csymbol encoding="text" '
    'definitionURL="http://www.sbml.org/sbml/symbols/distrib/normal">'
    "normal</csymbol><cn>0</cn><cn>1</cn></apply>"
)


def declared(package: str, required: str | None = "true", version: int = 1) -> str:
    space = f"http://www.sbml.org/sbml/level3/version1/{package}/version{version}"
    needed = "" if required is None else f'{package}:required="{required}"'
    return f'xmlns:{package}="{space}" {needed}'


ITS_OWN = SUBMODEL.replace("Submodels>", f"Submodels {declared('comp', None)}>", 1)


def text(
    root: str, more: str = "", before: str = "", cell: str = "", inside: str = "", version: int = 1
) -> str:
    """A' = k, with k = 2, and elements and attributes of packages at several places."""
    body = listed("Compartments", compartment("c", more=cell))
    one = species("A", 3.0)
    body += listed("Species", f"{one[:-2]}>{inside}</species>" if inside else one)
    body += listed("Parameters", parameter("k", 2.0)) + listed("Rules", rule("rate", "A", "k"))
    return sbml(body + more, version=version, root=root).replace("<model ", f"{before}<model ")


def is_read(given: str) -> bool:
    try:
        found = read_sbml(given)
    except odefit.InputError:
        return False
    assert (found.states, found.initial) == ({"A": "k"}, {"A": "3"})
    assert found.constants == {"c": 1.0, "k": 2.0}
    return True


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("required", ["true", "false", None])
@pytest.mark.parametrize("version", [1, 2])
def test_a_package_that_is_declared_and_not_used_does_not_matter(
    package: str, required: str | None, version: int
) -> None:
    assert is_read(text(declared(package, required), version=version))


@pytest.mark.parametrize("version", [2, 3])
def test_rules_of_a_package_that_is_not_read_do_not_matter(version: int) -> None:
    """Models with version 2 of fbc have an attribute ``fbc:strict``."""
    assert is_read(text(declared("fbc", "false", version)))


def test_ignored_packages_are_reported() -> None:
    root = f"{declared('comp')} {declared('layout', 'false')}"
    notes = [note for note in read_sbml(text(root)).translated if "package" in note]
    assert notes == [
        "the package 'comp' is not read",
        "the package 'layout' is not read",
    ]


WITHOUT_EFFECT = {
    "ports": text(
        declared("comp"),
        '<comp:listOfPorts><comp:port comp:id="p" comp:idRef="k"/></comp:listOfPorts>',
    ),
    "definitions of other models": text(declared("comp"), before=DEFINED),
    "other files": text(
        declared("comp"),
        before="<comp:listOfExternalModelDefinitions><comp:externalModelDefinition "
        'comp:id="x" comp:source="other.xml"/></comp:listOfExternalModelDefinitions>',
    ),
    "an empty list": text(declared("comp"), "<comp:listOfSubmodels/>"),
    "an annotation": text("", inside=f"<annotation>{ITS_OWN}</annotation>"),
    "uncertainties": text(
        declared("distrib"),
        inside="<distrib:listOfUncertainties><distrib:uncertainty><distrib:uncertParameter "
        'distrib:type="standardDeviation" distrib:value="0.3"/></distrib:uncertainty>'
        "</distrib:listOfUncertainties>",
    ),
    "no type of a compartment": text(declared("multi"), cell='multi:isType="false"'),
    "groups": text(
        declared("groups", "false"),
        '<groups:listOfGroups><groups:group groups:kind="collection"/></groups:listOfGroups>',
    ),
    "objectives": text(
        declared("fbc", "false"),
        '<fbc:listOfObjectives fbc:activeObjective="o"><fbc:objective fbc:id="o" '
        'fbc:type="maximize"/></fbc:listOfObjectives>',
    ),
    "a package of others": text('xmlns:z="http://example.org/z"', "<z:thing/>"),
}  # fmt: skip

PART_OF_THE_MODEL = {
    "a type of a compartment": (text(declared("multi"), cell='multi:isType="true"'), "'isType'"),
    "a geometry": (text(declared("spatial"), "<spatial:geometry/>"), "<geometry>"),
    "an array": (
        text(
            declared("arrays"),
            inside='<arrays:listOfDimensions><arrays:dimension arrays:id="i" arrays:size="k"/>'
            "</arrays:listOfDimensions>",
        ),
        "<dimension>",
    ),
    "a qualitative species": (
        text(
            declared("qual"),
            '<qual:listOfQualitativeSpecies><qual:qualitativeSpecies qual:id="q"/>'
            "</qual:listOfQualitativeSpecies>",
        ),
        "<qualitativeSpecies>",
    ),
    "a package of others": (
        text('xmlns:z="http://example.org/z" z:required="true"', "<z:thing/>"),
        "<thing>",
    ),
}


@pytest.mark.parametrize("case", WITHOUT_EFFECT)
def test_elements_without_effect_are_skipped(case: str) -> None:
    assert is_read(WITHOUT_EFFECT[case])


@pytest.mark.parametrize("case", PART_OF_THE_MODEL)
def test_a_package_that_changes_the_model_is_refused_with_its_line(case: str) -> None:
    given, what = PART_OF_THE_MODEL[case]
    message = rf"SBML text: line \d+: .*{what} is of the SBML package .* changes the meaning"
    with pytest.raises(odefit.InputError, match=message):
        read_sbml(given)


def test_a_random_number_is_refused() -> None:
    given = text(declared("distrib")).replace("<ci> k </ci>", NORMAL)
    assert NORMAL in given
    with pytest.raises(odefit.InputError, match=r"rate rule of 'A' .*the element 'normal' has no"):
        read_sbml(given)


def test_the_functions_of_the_package_of_functions_are_read() -> None:
    larger = math("max(k, 1)")
    given = text(declared("l3v2extendedmath")).replace(math("k"), larger)
    assert larger in given
    assert read_sbml(given).states == {"A": "max(k, 1)"}


@pytest.mark.parametrize("name", ["Events", "InitialAssignments", "Constraints"])
def test_an_empty_list_counts_as_none(name: str) -> None:
    assert is_read(text("", f"<listOf{name}/>"))


INSIDE = """<comp:listOfModelDefinitions><comp:modelDefinition id="d">
<listOfParameters><parameter id="x" value="3" constant="false"/>
<parameter id="k" value="5" constant="true"/></listOfParameters>
<listOfRules><rateRule variable="x"><math xmlns="http://www.w3.org/1998/Math/MathML">
<apply><times/><ci>k</ci><ci>x</ci></apply></math></rateRule></listOfRules>
</comp:modelDefinition></comp:listOfModelDefinitions>"""
REPLACED = (
    '<parameter id="k" value="0.5" constant="true"><comp:listOfReplacedElements>'
    '<comp:replacedElement comp:submodelRef="s" comp:idRef="k"/></comp:listOfReplacedElements>'
    "</parameter>"
)


def hierarchical(*elements: str) -> str:
    body = listed("Parameters", *elements) + SUBMODEL
    given = sbml(body, version=1, root=declared("comp"))
    return given.replace("<model ", f"{INSIDE}<model ")


def test_submodels_become_part_of_the_model() -> None:
    model = read_sbml(hierarchical(REPLACED))
    assert dict(model.states) == {"s__x": "k*s__x"}
    assert dict(model.constants) == {"k": 0.5}
    assert dict(model.initial) == {"s__x": "3"}


SUBMODELS = {
    "a replaced element of an unknown submodel": (
        hierarchical(REPLACED.replace('submodelRef="s"', 'submodelRef="z"')),
        "the submodelRef 'z'",
    ),
    "an unknown replaced element": (
        hierarchical(REPLACED.replace('idRef="k"', 'idRef="z"')),
        "no such SId in the model: 'z'",
    ),
    "in another file": (
        text(
            declared("comp"),
            SUBMODEL,
            '<comp:listOfExternalModelDefinitions><comp:externalModelDefinition comp:id="d" '
            'comp:source="other.xml"/></comp:listOfExternalModelDefinitions>',
        ),
        r"submodel 's' \(line \d+\): its model is in another file",
    ),
    "unknown": (text(declared("comp"), SUBMODEL), "there is no model 'd'"),
    "in itself": (
        text(declared("comp"), SUBMODEL, DEFINED.replace('"e"', '"d"')),
        "'d' contains itself",
    ),
    "without its package": (text("", ITS_OWN), "declare the package comp"),
    "replaced without a submodel": (
        text(
            declared("comp"),
            inside='<comp:listOfReplacedElements><comp:replacedElement comp:submodelRef="s" '
            'comp:idRef="A"/></comp:listOfReplacedElements>',
        ),
        "there is no submodel",
    ),
    "too deep": (
        text(
            declared("comp"),
            SUBMODEL.replace('"d"', '"m3000"'),
            "<comp:listOfModelDefinitions>"
            + "".join(
                f'<comp:modelDefinition id="m{i}"><comp:listOfSubmodels>'
                f'<comp:submodel comp:id="s" comp:modelRef="m{i - 1}"/>'
                "</comp:listOfSubmodels></comp:modelDefinition>"
                for i in range(1, 3001)
            )
            + '<comp:modelDefinition id="m0"/></comp:listOfModelDefinitions>',
        ),
        "more than 100 deep",
    ),
    "too many": (
        text(
            declared("comp"),
            SUBMODEL.replace('"d"', '"m9"'),
            "<comp:listOfModelDefinitions>"
            + "".join(
                f'<comp:modelDefinition id="m{i}"><comp:listOfSubmodels>'
                + "".join(
                    f'<comp:submodel comp:id="s{j}" comp:modelRef="m{i - 1}"/>' for j in range(3)
                )
                + "</comp:listOfSubmodels></comp:modelDefinition>"
                for i in range(1, 10)
            )
            + '<comp:modelDefinition id="m0"/></comp:listOfModelDefinitions>',
        ),
        "more than 1000 submodels",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SUBMODELS)
def test_submodels_that_cannot_be_read_are_refused(case: str) -> None:
    given, message = SUBMODELS[case]
    with pytest.raises(odefit.InputError, match=message):
        read_sbml(given)


def test_a_package_within_a_submodel_that_matters_is_refused() -> None:
    inside = INSIDE.replace(
        "<listOfRules>",
        "<multi:listOfSpeciesTypes><multi:speciesType "
        'multi:id="t"/></multi:listOfSpeciesTypes><listOfRules>',
    )
    root = declared("comp") + " " + declared("multi")
    given = sbml(SUBMODEL, version=1, root=root).replace("<model ", f"{inside}<model ")
    with pytest.raises(odefit.InputError, match="other packages may be the reason"):
        read_sbml(given)

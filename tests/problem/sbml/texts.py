"""SBML written by hand: short texts become whole documents."""

from __future__ import annotations

import libsbml

MATH = 'xmlns="http://www.w3.org/1998/Math/MathML"'


def math(formula: str) -> str:
    """MathML of a formula in libsbml's infix notation (level 3)."""
    tree = libsbml.parseL3Formula(formula)
    assert tree is not None, libsbml.getLastParseL3Error()
    text = str(libsbml.writeMathMLToString(tree))
    return text.partition("?>")[2].strip()


def sbml(body: str, level: int = 3, version: int = 2, attributes: str = "", root: str = "") -> str:
    """A document with the lists of `body` in its model."""
    namespace = f"http://www.sbml.org/sbml/level{level}/version{version}"
    namespace += "/core" if level == 3 else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<sbml xmlns="{namespace}" level="{level}" version="{version}" {root}>\n'
        f'<model id="model" {attributes}>\n{body}\n</model>\n</sbml>\n'
    )


def listed(kind: str, *elements: str) -> str:
    """A list of elements, such as ``listed("Parameters", ...)``."""
    return f"<listOf{kind}>{''.join(elements)}</listOf{kind}>"


def compartment(name: str, size: float | None = 1.0, constant: bool = True, more: str = "") -> str:
    given = "" if size is None else f'size="{size}"'
    return (
        f'<compartment id="{name}" spatialDimensions="3" {given} '
        f'constant="{str(constant).lower()}" {more}/>'
    )


def species(
    name: str,
    value: float | None = 1.0,
    place: str = "c",
    amount: bool = False,
    given: str = "Concentration",
    boundary: bool = False,
    constant: bool = False,
    more: str = "",
) -> str:
    first = "" if value is None else f'initial{given}="{value}"'
    return (
        f'<species id="{name}" compartment="{place}" {first} '
        f'hasOnlySubstanceUnits="{str(amount).lower()}" '
        f'boundaryCondition="{str(boundary).lower()}" constant="{str(constant).lower()}" {more}/>'
    )


def parameter(name: str, value: float | None = 1.0, constant: bool = True) -> str:
    given = "" if value is None else f'value="{value}"'
    return f'<parameter id="{name}" {given} constant="{str(constant).lower()}"/>'


def reaction(
    name: str,
    takes: str,
    makes: str,
    rate: str | None,
    local: str = "",
    fast: bool | None = None,
) -> str:
    """A reaction such as ``reaction("r", "A 2*B", "C", "k*A*B^2")``."""

    def references(text: str) -> str:
        found = ""
        for part in text.split():
            count, _, who = part.rpartition("*")
            found += (
                f'<speciesReference species="{who}" stoichiometry="{count or 1}" constant="true"/>'
            )
        return found

    parts = ""
    if takes:
        parts += listed("Reactants", references(takes))
    if makes:
        parts += listed("Products", references(makes))
    if rate is not None:
        parts += f"<kineticLaw>{math(rate)}{local}</kineticLaw>"
    speed = "" if fast is None else f'fast="{str(fast).lower()}"'
    return f'<reaction id="{name}" reversible="false" {speed}>{parts}</reaction>'


def rule(kind: str, variable: str, formula: str) -> str:
    who = f'variable="{variable}"' if variable else ""
    return f"<{kind}Rule {who}>{math(formula)}</{kind}Rule>"


def starting(symbol: str, formula: str) -> str:
    return f'<initialAssignment symbol="{symbol}">{math(formula)}</initialAssignment>'


def function(name: str, arguments: str, formula: str) -> str:
    return (
        f'<functionDefinition id="{name}">{math(f"lambda({arguments}, {formula})")}'
        "</functionDefinition>"
    )


def event(
    name: str, trigger: str, assign: dict[str, str], initial: bool = True, more: str = ""
) -> str:
    given = "".join(
        f'<eventAssignment variable="{who}">{math(what)}</eventAssignment>'
        for who, what in assign.items()
    )
    return (
        f'<event id="{name}" useValuesFromTriggerTime="true">'
        f'<trigger initialValue="{str(initial).lower()}" persistent="true">{math(trigger)}'
        f"</trigger>{more}{listed('EventAssignments', given)}</event>"
    )

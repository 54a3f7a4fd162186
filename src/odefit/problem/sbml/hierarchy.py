"""Hierarchical models (SBML's package comp), flattened by libsbml."""

from __future__ import annotations

from typing import Any

from odefit.common.errors import InputError, did_you_mean, shown

MAX_SUBMODELS = 1000
"""Largest number of nested models: each level can double their number."""

MAX_LEVELS = 100
"""Deepest nesting of models."""


def flattened(document: Any, source: str) -> str:
    """Return the text of a document with its submodels merged into its model.

    Raises
    ------
    InputError
        A submodel is in another file, is unknown, contains itself or too many others, or libsbml
        cannot flatten the model.
    """
    import libsbml

    _check_submodels(document, source)
    conversion = libsbml.ConversionProperties()
    conversion.addOption("flatten comp", True)
    conversion.addOption("performValidation", False)
    known = document.getNumErrors()
    done = document.convert(conversion) == libsbml.LIBSBML_OPERATION_SUCCESS
    new = map(document.getError, range(known, document.getNumErrors()))
    grave = [e for e in new if e.getSeverity() >= libsbml.LIBSBML_SEV_ERROR]
    if grave or not done:
        raise InputError(
            [f"{source}, line {e.getLine()}: {' '.join(e.getMessage().split())}" for e in grave]
            or f"{source}: libsbml cannot merge its submodels into one model; other packages "
            "may be the reason"
        )
    return str(libsbml.writeSBMLToString(document))


def _check_submodels(document: Any, source: str) -> None:
    """Refuse submodels in other files, or in endless nesting."""
    plugin = document.getPlugin("comp")
    if plugin is None:
        raise InputError(
            f"{source}: it has submodels; declare the package comp in the first line, in <sbml>"
        )
    definitions = {d.getId(): d for d in plugin.getListOfModelDefinitions()}
    external = {d.getId() for d in plugin.getListOfExternalModelDefinitions()}
    counts: dict[str, int] = {}

    def count(model: Any, above: tuple[str, ...]) -> int:
        total = 0
        inside = model.getPlugin("comp")
        for submodel in inside.getListOfSubmodels() if inside is not None else ():
            reference = submodel.getModelRef()
            place = f"{source}: submodel {shown(submodel.getId())} (line {submodel.getLine()})"
            if reference in external:
                raise InputError(
                    f"{place}: its model is in another file, and no other file is read; read a "
                    "flattened copy of the model"
                )
            if len(above) > MAX_LEVELS:
                raise InputError(f"{place}: models are nested more than {MAX_LEVELS} deep")
            if reference in above:
                raise InputError(f"{place}: the model {shown(reference)} contains itself")
            if reference not in definitions:
                known = did_you_mean(reference, definitions)
                raise InputError(f"{place}: there is no model {shown(reference)}{known}")
            if reference not in counts:
                counts[reference] = count(definitions[reference], (*above, reference))
            total += 1 + counts[reference]
            if total > MAX_SUBMODELS:
                raise InputError(f"{place}: the model holds more than {MAX_SUBMODELS} submodels")
        return total

    if not count(document.getModel(), ()):
        raise InputError(f"{source}: elements of submodels are replaced, but there is no submodel")

"""SBML documents, opened so that no text can do harm."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from xml.parsers import expat

from odefit.common.errors import InputError, did_you_mean, shown
from odefit.common.packages import require
from odefit.problem.inputs.file_access import text_or_file
from odefit.problem.inputs.issues import Issues
from odefit.problem.sbml.hierarchy import flattened
from odefit.problem.sbml.splines import is_spline

MAX_DEPTH = 1500
"""Deepest nesting of elements: libsbml recurses for each level and crashes beyond it."""

MAX_SIZE = 100_000_000
"""Largest length of a document in characters."""

MAX_ELEMENTS, MAX_COMPONENTS = 1_000_000, 20_000
"""Largest numbers of elements, and of those that :data:`COMPONENTS` names."""

COMPONENTS = frozenset(
    {"compartment", "species", "parameter", "localParameter", "reaction", "event", "rateRule",
     "assignmentRule", "algebraicRule", "initialAssignment", "functionDefinition",
     "unitDefinition", "constraint"}
)  # fmt: skip
"""Elements of SBML that take separate time to read."""

XINCLUDE = "http://www.w3.org/2001/XInclude"
"""The namespace of elements that include other files."""

MAX_MESSAGES = 20
"""Largest number of libsbml's messages passed on; the rest are usually consequences."""

MATHML = "http://www.w3.org/1998/Math/MathML"
"""The namespace of MathML."""

NUMBER_ATTRIBUTES = (
    "type", "base", "encoding", "definitionURL", "id", "class", "style", "xref", "other",
)  # fmt: skip
"""Attributes that MathML 2 defines for a number."""

BLANK = "\ufeff \t\r\n"
"""Text that may precede a document."""

_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")


def open_model(path_or_text: str | os.PathLike[str]) -> tuple[Any, Any, str]:
    """Return libsbml's document, its model, and the file's name in messages."""
    require("libsbml")
    import libsbml

    text, source = text_or_file(
        path_or_text, lambda words: words.lstrip(BLANK).startswith("<"), "SBML text"
    )
    text = text.lstrip(BLANK)
    hierarchical = _check_xml(text, source).hierarchical
    body = _DECLARATION.sub("", text, count=1)
    document = libsbml.readSBMLFromString(f'<?xml version="1.0" encoding="UTF-8"?>{body}')
    _check_errors(document, source)
    if hierarchical and document.getModel() is not None:
        text, source = flattened(document, source), f"{source}, flattened"
        _check_xml(text, source)  # packages within the submodels
        document = libsbml.readSBMLFromString(text)
        _check_errors(document, source)
    model = document.getModel()
    if model is None:
        raise InputError(f"{source}: the document has no model")
    # The document owns the model, and must live as long.
    return document, model, source


def remove_empty_formulas(model: Any) -> list[str]:
    """Remove elements that level 3 version 2 allows without a formula, as they have no effect."""
    removed = []
    listed = [(model.getListOfRules(), "rule"), (model.getListOfInitialAssignments(), "assignment")]
    listed += [(e.getListOfEventAssignments(), "assignment") for e in model.getListOfEvents()]
    for elements, kind in listed:
        for i in reversed(range(len(elements))):
            if elements.get(i).getMath() is None and not is_spline(elements.get(i)):
                name = elements.get(i).getId()
                removed.append(
                    f"a {kind} {f'of {shown(name)} ' if name else ''}has no formula: left out"
                )
                elements.remove(i)
    return removed


def promote_local_parameters(document: Any, issues: Issues) -> list[str]:
    """Turn reactions' local parameters into parameters of the model; return their new names."""
    import libsbml

    model = document.getModel()
    local: list[tuple[str, str]] = []
    for reaction in model.getListOfReactions():
        law = reaction.getKineticLaw()
        if law is None:
            continue
        level3 = law.getLevel() > 2
        listed = law.getListOfLocalParameters() if level3 else law.getListOfParameters()
        names = [parameter.getId() for parameter in listed]
        for name in dict.fromkeys(n for n in names if names.count(n) > 1):
            # libsbml would rename the second one.
            issues.error(
                f"reaction '{reaction.getId()}'", f"two of its local parameters are named '{name}'"
            )
        local += [(name, reaction.getId()) for name in reversed(names)]
    others = model.getNumParameters()
    conversion = libsbml.ConversionProperties()
    conversion.addOption("promoteLocalParameters", True)
    document.convert(conversion)
    promoted = [model.getParameter(i) for i in range(others, model.getNumParameters())]
    return [
        f"the parameter '{name}' of the reaction '{reaction}' is named '{parameter.getId()}'"
        for (name, reaction), parameter in zip(local, promoted, strict=True)
    ]


def _check_xml(text: str, source: str) -> PackageUse:
    """Refuse anything but SBML, and texts that a parser cannot read safely."""
    if not text:
        raise InputError(f"{source}: the file is empty; an SBML file starts with <?xml or <sbml")
    if len(text) > MAX_SIZE:
        raise InputError(f"{source}: longer than {MAX_SIZE} characters")
    parser = expat.ParserCreate(encoding="utf-8", namespace_separator=" ")
    scan = _Scan(parser)
    parser.StartElementHandler = scan.start
    parser.EndElementHandler = scan.end
    parser.StartDoctypeDeclHandler = scan.doctype
    try:
        parser.Parse(_DECLARATION.sub("", text, count=1), True)
    except expat.ExpatError as error:
        lines = text[: len(text) - len(_DECLARATION.sub("", text, count=1))].count("\n")
        reason = expat.errors.messages[error.code]
        raise InputError(
            f"{source}: not XML that can be read, line {error.lineno + lines}: {reason}"
        ) from None
    except _RefusedError as error:
        raise InputError(f"{source}: {error}") from None
    return scan.packages


class _RefusedError(Exception):
    """The reason for refusing a document."""


class _Scan:
    """Handlers of a first scan of a document."""

    def __init__(self, parser: expat.XMLParserType) -> None:
        self.parser = parser
        self.packages = PackageUse()
        self.depth = self.elements = self.components = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self.depth == 0:
            namespace, _, local = name.rpartition(" ")
            if local != "sbml" or "sbml.org/sbml/level" not in namespace:
                raise _RefusedError(f"not SBML: the outermost element is <{local}>, not <sbml>")
            self.packages.root(attributes)
        if name == f"{MATHML} cn":
            self._number(attributes)
        if refusal := self.packages.start(name, attributes):
            raise _RefusedError(f"line {self.parser.CurrentLineNumber}: {refusal}")
        namespace, _, local = name.rpartition(" ")
        if namespace == XINCLUDE:
            raise _RefusedError(
                f"line {self.parser.CurrentLineNumber}: <{local}> includes another file "
                "(XInclude), which is not read; put its content here"
            )
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _RefusedError(f"elements are nested deeper than {MAX_DEPTH} levels")
        self.elements += 1
        self.components += local in COMPONENTS
        if self.elements > MAX_ELEMENTS or self.components > MAX_COMPONENTS:
            most = f"{MAX_COMPONENTS} species, parameters, reactions and the like"
            if self.elements > MAX_ELEMENTS:
                most = f"{MAX_ELEMENTS} elements"
            raise _RefusedError(f"the document has more than {most}, which is not read")

    def end(self, name: str) -> None:
        self.packages.end()
        self.depth -= 1

    def doctype(self, *details: object) -> None:
        raise _RefusedError(
            "it declares a document type (<!DOCTYPE>), which SBML files do not have; remove it"
        )

    def _number(self, attributes: dict[str, str]) -> None:
        """Refuse attributes of a number that libsbml would silently ignore."""
        for key in attributes:
            namespace, _, attribute = key.rpartition(" ")
            if not namespace and attribute not in NUMBER_ATTRIBUTES:
                hint = did_you_mean(attribute, NUMBER_ATTRIBUTES)
            elif "sbml.org/sbml/" in namespace and attribute != "units":
                hint = "; the only attribute that SBML adds to a number is 'units'"
            else:
                continue
            line = self.parser.CurrentLineNumber
            raise _RefusedError(f"line {line}: unknown attribute {shown(attribute)} of <cn>{hint}")


def _matters(error: Any) -> bool:
    """Return whether libsbml found an error that prevents reading the model.

    Rules of packages do not matter, since package elements that affect the model were refused
    before. Later versions of SBML allow empty lists.
    """
    import libsbml

    if error.getSeverity() < libsbml.LIBSBML_SEV_ERROR or error.getPackage() not in {"", "core"}:
        return False
    if error.getErrorId() == libsbml.NotSchemaConformant:  # as for lists of packages
        return not str(error.getMessage()).rstrip().endswith("cannot be empty.")
    return error.getErrorId() not in {
        libsbml.EmptyListElement,
        libsbml.EmptyListInKineticLaw,
        libsbml.EmptyListInReaction,
        libsbml.EmptyListOfUnits,
        libsbml.EmptyUnitListElement,
        libsbml.RequiredPackagePresent,
    }


def _check_errors(document: Any, source: str) -> None:
    """Raise the relevant errors that libsbml found on reading."""
    grave = [e for e in map(document.getError, range(document.getNumErrors())) if _matters(e)]
    if not grave:
        return
    messages = [
        f"{source}, line {e.getLine()}: {' '.join(e.getMessage().split())}"
        for e in grave[:MAX_MESSAGES]
    ]
    if len(grave) > MAX_MESSAGES:
        messages.append(f"{source}: and {len(grave) - MAX_MESSAGES} more of this kind")
    raise InputError(messages)


_PACKAGE = re.compile(r"sbml\.org/sbml/level\d+/version\d+/(\w+)/version\d+")

BESIDE_THE_MODEL = frozenset({"fbc", "groups", "layout", "render"})
"""Packages that do not affect a model's dynamics, whatever they declare."""

PART_OF_THE_MODEL = frozenset({"arrays", "distrib", "dyn", "multi", "spatial"})
"""Packages whose elements are part of the model, whatever they declare."""

WITHOUT_EFFECT: Mapping[str, frozenset[str]] = {
    "": frozenset({"annotation", "notes"}),
    # Targets of references, and models included only as submodels.
    "comp": frozenset({"port", "modelDefinition", "externalModelDefinition"}),
    "distrib": frozenset({"uncertainty"}),
}
"""Elements by package, including SBML itself, that change no equation; nor does their content."""

DESCRIPTIONS = frozenset({"id", "name", "metaid", "sboTerm"})
"""Attributes that name or describe an element."""

NO = {"isType": "false", "isLocal": "false", "isSpatial": "false", "isBasis": "false"}
"""Attributes with the value that shows that an element does not use the package."""


class PackageUse:
    """The packages used in a document, collected as its parser meets their elements.

    A declaration alone does not matter: many programs declare all packages that they can write.
    """

    def __init__(self) -> None:
        self._required: dict[str, bool] = {}
        self.hierarchical = False  # True with submodels
        self._inside = 0  # number of open elements inside one without effect

    def root(self, attributes: Mapping[str, str]) -> None:
        """Record the packages declared in the attributes of the outermost element."""
        for key, value in attributes.items():
            namespace, _, attribute = key.rpartition(" ")
            if namespace and attribute == "required":
                self._required[namespace] = value.strip() in {"true", "1"}

    def start(self, name: str, attributes: Mapping[str, str]) -> str:
        """Return the reason why a document with this element cannot be read, empty if it can.

        Names of elements and attributes follow their namespace and a blank.
        """
        namespace, _, local = name.rpartition(" ")
        package = _package(namespace)
        if self._inside or local in WITHOUT_EFFECT.get(package, ()):
            self._inside += 1
            return ""
        self.hierarchical |= package == "comp" and not local.startswith("listOf")
        if self._matters(namespace) and not local.startswith("listOf"):
            return _refusal(package or namespace, f"<{local}>")
        for key, value in attributes.items():
            other, _, attribute = key.rpartition(" ")
            described = (
                attribute == "required"
                or attribute in DESCRIPTIONS
                or NO.get(attribute) == value.strip()
            )
            if other and not described and self._matters(other):
                return _refusal(_package(other) or other, f"the attribute {shown(attribute)}")
        return ""

    def end(self) -> None:
        """Record the end of an element."""
        self._inside = max(0, self._inside - 1)

    def _matters(self, namespace: str) -> bool:
        """True if elements of a namespace are part of the model."""
        package = _package(namespace)
        if package == "comp" or package in BESIDE_THE_MODEL or package in PART_OF_THE_MODEL:
            return package in PART_OF_THE_MODEL
        return self._required.get(namespace, package != "")


def declared_packages(model: Any) -> list[str]:
    """Return the packages that a model's document declares, except further functions."""
    spaces = model.getSBMLDocument().getNamespaces()
    names = [_package(spaces.getURI(i)) for i in range(spaces.getNumNamespaces())]
    return [name for name in dict.fromkeys(names) if name not in {"", "l3v2extendedmath"}]


def _package(namespace: str) -> str:
    """Return the name of an SBML package by its namespace; empty for other namespaces."""
    match = _PACKAGE.search(namespace)
    return match[1] if match else ""


def _refusal(package: str, feature: str) -> str:
    return (
        f"{feature} is of the SBML package {shown(package)}, which changes the meaning of a "
        "model and is not read"
    )

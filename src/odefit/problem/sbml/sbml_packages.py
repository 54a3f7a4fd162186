"""Packages of SBML: which elements and attributes of a document change the meaning of its model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from odefit.common.errors import shown

_PACKAGE = re.compile(r"sbml\.org/sbml/level\d+/version\d+/(\w+)/version\d+")

BESIDE_THE_MODEL = frozenset({"fbc", "groups", "layout", "render"})
"""Packages that say nothing of how a model changes in time, whatever they declare of themselves."""

PART_OF_THE_MODEL = frozenset({"arrays", "comp", "distrib", "dyn", "multi", "spatial"})
"""Packages whose elements are part of the model, whatever they declare of themselves."""

WITHOUT_EFFECT: Mapping[str, frozenset[str]] = {
    "": frozenset({"annotation", "notes"}),
    # What others may refer to, and models that are part of this one only as submodels.
    "comp": frozenset({"port", "modelDefinition", "externalModelDefinition"}),
    "distrib": frozenset({"uncertainty"}),
}
"""Elements by package, that of SBML itself among them, which change no equation, nor what they
contain."""

DESCRIPTIONS = frozenset({"id", "name", "metaid", "sboTerm"})
"""Attributes that name and describe an element."""

NO = {"isType": "false", "isLocal": "false", "isSpatial": "false", "isBasis": "false"}
"""Attributes, and the value of each that says that an element uses nothing of the package."""


class PackageUse:
    """The use of packages in a document, as its parser comes to their elements.

    A declared package is no obstacle: many programs declare those that they could write.
    """

    def __init__(self) -> None:
        self._required: dict[str, bool] = {}
        self._inside = 0  # how many elements are open of one that has no effect

    def root(self, attributes: Mapping[str, str]) -> None:
        """Note what packages declare of themselves, in attributes of the outermost element."""
        for key, value in attributes.items():
            namespace, _, what = key.rpartition(" ")
            if namespace and what == "required":
                self._required[namespace] = value.strip() in {"true", "1"}

    def start(self, name: str, attributes: Mapping[str, str]) -> str:
        """Return why a document with this element cannot be read, empty if it can.

        Names of element and attributes have their namespace before them, with a blank between.
        """
        namespace, _, local = name.rpartition(" ")
        package = _package(namespace)
        if self._inside or local in WITHOUT_EFFECT.get(package, ()):
            self._inside += 1
            return ""
        if self._matters(namespace) and not local.startswith("listOf"):
            return _refusal(package or namespace, f"<{local}>")
        for key, value in attributes.items():
            other, _, what = key.rpartition(" ")
            described = what == "required" or what in DESCRIPTIONS or NO.get(what) == value.strip()
            if other and not described and self._matters(other):
                return _refusal(_package(other) or other, f"the attribute {shown(what)}")
        return ""

    def end(self) -> None:
        """Note the end of an element."""
        self._inside = max(0, self._inside - 1)

    def _matters(self, namespace: str) -> bool:
        """Whether what is in a namespace is part of the model."""
        package = _package(namespace)
        if package in BESIDE_THE_MODEL or package in PART_OF_THE_MODEL:
            return package in PART_OF_THE_MODEL
        return self._required.get(namespace, package != "")


def declared_packages(model: Any) -> list[str]:
    """Return the packages that the document of a model declares, further functions apart."""
    spaces = model.getSBMLDocument().getNamespaces()
    names = [_package(spaces.getURI(i)) for i in range(spaces.getNumNamespaces())]
    return [name for name in dict.fromkeys(names) if name not in {"", "l3v2extendedmath"}]


def _package(namespace: str) -> str:
    """Return the name of the package of a namespace, or an empty text where SBML has none."""
    found = _PACKAGE.search(namespace)
    return found[1] if found else ""


def _refusal(package: str, what: str) -> str:
    remedy = "; a flattened copy of the model can be read" if package == "comp" else ""
    return (
        f"{what} is of the SBML package {shown(package)}, which changes the meaning of a model and "
        f"is not read{remedy}"
    )

"""PEtab problems: versions 1 and 2 read, version 2 written."""

from odefit.formats.petab.reading import PetabImport, read_petab
from odefit.formats.petab.writing import write_petab

__all__ = ["PetabImport", "read_petab", "write_petab"]

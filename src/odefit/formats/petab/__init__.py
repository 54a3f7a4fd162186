"""PEtab problems, version 1 and 2, as problems of format 1."""

from odefit.formats.petab.reading import PetabImport, read_petab

__all__ = ["PetabImport", "read_petab"]

"""File formats of other programs: PEtab."""

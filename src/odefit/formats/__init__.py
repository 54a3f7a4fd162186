"""Other people's files: PEtab."""

"""Results with their tables, figures and files."""

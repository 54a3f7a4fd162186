"""Reports and tables as files."""

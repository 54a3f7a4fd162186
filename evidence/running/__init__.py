"""The runner of all evidence: tasks, processes, the store, tables and figures."""

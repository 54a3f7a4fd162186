"""Published PEtab problems beside AMICI and pyPESTO."""

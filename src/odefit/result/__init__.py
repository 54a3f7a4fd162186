"""Results with the tables, figures and files that users ask of them."""

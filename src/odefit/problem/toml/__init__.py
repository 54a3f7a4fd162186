"""Problem files: reading, writing and drafting them."""

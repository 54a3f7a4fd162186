"""Files and tables as users hand them over, with every mistake that is found in them."""

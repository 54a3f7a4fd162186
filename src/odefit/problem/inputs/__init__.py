"""Files and tables given by users, with reports of every mistake in them."""

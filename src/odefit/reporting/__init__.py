"""The appearance of a result: tables, figures, sentences, the HTML report, the terminal."""

"""What a result looks like: tables, figures, sentences, the HTML report, the terminal."""

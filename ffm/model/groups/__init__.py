"""Groups of problems: equal function names, sequences, parts of them, iterations."""

"""Which synchronizations a program needs, and what relies on each."""

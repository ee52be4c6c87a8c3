"""Corrections of a running program: which ones fit, which ones pay, and comparing runs with and without them."""

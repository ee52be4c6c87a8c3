"""Screens for a pipe or a terminal of at least 80 columns: views in, rich renderables out."""

"""A results folder: where each file is, which measurement it belongs to, and who measures in it."""

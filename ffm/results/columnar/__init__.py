"""Columnar files of results: Arrow tables, what their columns must satisfy, and the timeline."""

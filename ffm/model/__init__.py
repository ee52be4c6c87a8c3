"""The performance model: pure functions, tables in and numbers out. Imports nothing else of ffm."""

"""The performance model: pure functions from tables to numbers. Imports nothing else from ffm."""

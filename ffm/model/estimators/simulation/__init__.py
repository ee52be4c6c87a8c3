"""The simulation of a run with some problems fixed, as Numba compiles it."""

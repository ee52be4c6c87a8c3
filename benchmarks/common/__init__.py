"""What the benchmarks share: samples and programs, the machine, results and pictures."""

"""What one run's events prove: order of work, memory, transfers, threads; and how two runs are matched."""

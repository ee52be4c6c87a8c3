"""What one run's events prove: order of work, transfers, downloads, allocations; and how two runs are matched."""

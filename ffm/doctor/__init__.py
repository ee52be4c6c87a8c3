"""What `ffm doctor` finds out about this machine and its driver."""

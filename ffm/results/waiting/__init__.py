"""What a run waited for, as stored: its files, the critical path, and the regions of the program on it."""

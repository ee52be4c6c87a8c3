"""What a run waits for: the critical path, its regions and patterns."""

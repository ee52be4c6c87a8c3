"""What a run waits for: the graph of causes, the critical path through it, and patterns of waiting."""

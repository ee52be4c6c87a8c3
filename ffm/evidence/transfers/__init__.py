"""What transfers prove: their memory, their contents, how they are staged, what was looked at."""

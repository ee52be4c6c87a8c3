"""Memory that stored results may take: what is free, what is kept, what is left to files."""

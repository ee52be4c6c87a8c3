"""Memory that stored results may take: what is free, what is kept, and what goes to files instead."""

"""The documents of results: typed, versioned JSON."""

"""Reading what the collector recorded."""

"""The five stages of the feed-forward measurement, and the typed documents that pass between them."""

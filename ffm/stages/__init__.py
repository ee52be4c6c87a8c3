"""The five stages of the feed-forward measurement."""

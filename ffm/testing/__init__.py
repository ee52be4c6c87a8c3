"""For tests of programs that use a GPU: how often each may wait."""

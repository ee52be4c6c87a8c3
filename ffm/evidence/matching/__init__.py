"""Which operation of one run is which of another."""

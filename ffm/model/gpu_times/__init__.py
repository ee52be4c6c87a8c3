"""When the GPU worked, inferred from what a trace of driver calls shows."""

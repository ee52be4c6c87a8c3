"""What a small program that blocks on the GPU reveals about a driver: its wait function, latency and device."""

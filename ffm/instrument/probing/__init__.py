"""What a small program that blocks on the GPU tells about a driver: its wait function, latency and device."""

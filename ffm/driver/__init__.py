"""What is known about a GPU driver: its functions, its entry points, its internal wait function."""

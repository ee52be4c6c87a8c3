"""Waits that the program needs the way it is written, but that cost time: what they wait for, and what to do."""

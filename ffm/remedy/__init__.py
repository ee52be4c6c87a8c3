"""Identify remedies, apply them to a running program, and verify what they saved."""

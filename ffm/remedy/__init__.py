"""Identifying remedies, applying them to a running program, verifying what they saved."""

"""What memory the work of a run uses, and whose work has none in common, so that its order does not matter."""

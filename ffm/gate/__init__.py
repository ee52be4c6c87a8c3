"""The gate: which unneeded synchronizations and transfers a project allows, and which of a run's it does not."""

"""What fixing problems saves, by each estimator: replay, carry and bound."""

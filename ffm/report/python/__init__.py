"""What users of Python packages are told in these packages' words."""

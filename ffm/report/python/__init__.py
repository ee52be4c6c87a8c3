"""What users of Python packages are told, in the terms of these packages."""

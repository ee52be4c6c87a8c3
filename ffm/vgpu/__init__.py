"""A virtual CUDA driver and sample applications, for machines without a GPU."""

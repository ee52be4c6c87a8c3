"""Stage 5: what the runs found, joined on one timeline, modelled, and written as the analysis."""

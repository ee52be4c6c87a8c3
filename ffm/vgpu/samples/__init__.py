"""Sample CUDA programs with known problems, each with a corrected twin, and the truth about their call sites."""

"""ffm: feed-forward measurement of CUDA programs.

Runs an unmodified program several times under ever more specific instrumentation, proves which
synchronizations and transfers it did not need, and models what fixing each would save
(Welton, "The Feed-Forward Measurement Model").
"""

from ffm.marks import iteration

__all__ = ["iteration"]

__version__ = "0.1.0"

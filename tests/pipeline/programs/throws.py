"""Uses the GPU, and a library that throws. Python itself does not bring what C++ needs to find a handler.

Arguments: the CUDA runtime, and the library.
"""

import ctypes
import sys

runtime = ctypes.CDLL(sys.argv[1])
device = ctypes.c_void_p()
runtime.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(4))
for _ in range(20):
    runtime.cudaMemset(device, 0, ctypes.c_size_t(4))
    runtime.cudaDeviceSynchronize()
print(ctypes.CDLL(sys.argv[2]).caught(4))

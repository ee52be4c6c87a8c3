"""A thread computes in Python while another one, back from a call outside of Python, wants the interpreter's lock.

Arguments: the CUDA runtime, and the seconds after which a thread asks the one that has the lock to let it go.
"""

import ctypes
import sys
import threading

runtime, library = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
sys.setswitchinterval(float(sys.argv[2]))
device = ctypes.c_void_p()
runtime.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(4))
over = []


def use_gpu() -> None:
    runtime.cudaMemset(device, 0, ctypes.c_size_t(4))


def want_the_lock() -> None:
    for _ in range(5):
        use_gpu()
        library.usleep(50_000)  # meanwhile, the other thread computes
    use_gpu()
    over.append(True)


def compute() -> None:
    while not over:
        pass


other = threading.Thread(target=want_the_lock)
other.start()
compute()
use_gpu()
other.join()

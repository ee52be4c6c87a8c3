/* timed_frees, with a system call instruction of its own. */
#define ASKS_THE_KERNEL
#include "timed_frees.cu"

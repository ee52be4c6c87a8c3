/* timed, with a system call instruction of its own. */
#define ASKS_THE_KERNEL
#include "timed.cu"

/* timed_downloads, with a system call instruction of its own. */
#define ASKS_THE_KERNEL
#include "timed_downloads.cu"

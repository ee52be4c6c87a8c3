/* timed_uploads, with a system call instruction of its own. */
#define ASKS_THE_KERNEL
#include "timed_uploads.cu"

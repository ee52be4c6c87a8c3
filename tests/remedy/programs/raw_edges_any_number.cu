/* As raw_edges.cu, but the call is a function's that is given the number. */
#define RAW_SYSTEM_CALLS "mov %%rcx, %%rax"
#include "edges.cu"

/* The scenes of edges.cu, and one with a system call of its own: so no page may be closed in this program. */
#define RAW_SYSTEM_CALLS "mov $1, %%eax"
#include "edges.cu"

/* The scenes of edges.cu, and one with a system call of its own: so no page may be closed in this program. */
#define RAW_SYSTEM_CALLS
#include "edges.cu"

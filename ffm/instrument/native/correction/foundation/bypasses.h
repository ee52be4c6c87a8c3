/* Users of memory that neither fault on closed pages nor go through the guarded functions of the C library
 * (guards.c). */
#ifndef FFM_REMEDY_BYPASSES_H
#define FFM_REMEDY_BYPASSES_H

#include <stdbool.h>

/* Whether the program, as loaded now, contains any: a module with system call instructions of its own (a Go runtime, a
 * sanitizer, liburing), or MPI, which may let another process read. Searches again only after modules were loaded. */
bool ffm_bypasses_loaded(void);

#endif

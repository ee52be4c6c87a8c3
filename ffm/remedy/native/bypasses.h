/* Users of memory that neither fault on closed pages nor come through the C library's functions, which are guarded
 * (guards.c). */
#ifndef FFM_REMEDY_BYPASSES_H
#define FFM_REMEDY_BYPASSES_H

#include <stdbool.h>

/* Whether the program, as far as it is loaded now, has such: a module that makes system calls with instructions of its
 * own (a Go runtime, a sanitizer, liburing), or MPI, which may let another process read. Looks again only when modules
 * were loaded. */
bool ffm_bypasses_loaded(void);

#endif

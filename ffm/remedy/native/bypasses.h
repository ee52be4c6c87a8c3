/* Users of memory that neither fault on closed pages nor come through the C library's functions, which are guarded
 * (guards.c). */
#ifndef FFM_REMEDY_BYPASSES_H
#define FFM_REMEDY_BYPASSES_H

#include <stdbool.h>

/* Whether the program, as far as it is loaded now, has such: a module that makes system calls with instructions of its
 * own (a Go runtime, a sanitizer, liburing), or MPI, which may let another process read. Looks again only when modules
 * were loaded. True too while a fork is under way: a thread that looks holds a lock of the loader, which the child
 * would find held for ever (glibc takes back others, not dl_iterate_phdr's). */
bool ffm_bypasses_loaded(void);

/* A fork begins, or is over in the parent. */
void ffm_bypasses_fork(bool begins);
void ffm_bypasses_after_fork(void);

#endif

/* System calls that do not come through the C library's functions, which are guarded (guards.c): on closed pages the
 * kernel would refuse them. */
#ifndef FFM_REMEDY_RAW_CALLS_H
#define FFM_REMEDY_RAW_CALLS_H

#include <stdbool.h>

/* Whether some module of the program, as far as it is loaded now, makes system calls with instructions of its own: a
 * Go runtime, a sanitizer, liburing. Looks again only when modules were loaded. */
bool ffm_raw_calls_anywhere(void);

#endif

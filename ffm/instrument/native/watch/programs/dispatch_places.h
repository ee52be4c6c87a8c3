/* Places where system calls are made that cannot be made from inside a handler: those that start a thread or a process,
 * or that affect the stack they run on, must be made where the program makes them. The program continues instead in one
 * of these places, which makes the call and jumps back after it. */
#ifndef FFM_DISPATCH_PLACES_H
#define FFM_DISPATCH_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

typedef enum {
    FFM_PLACE_PLAIN,
    FFM_PLACE_THREAD,  /* the new thread joins first */
    FFM_PLACE_PROCESS, /* the parent, whose stack the new process may have used, arms again what was opened for it */
    FFM_PLACE_SHARING, /* the new process, which shares the program's memory, joins first, and its parent is told */
    FFM_PLACES
} ffm_place;

/* Make the thread's call in such a place. If false, it is made in its own, and all system calls are let through until
 * the thread next returns from the driver. */
bool ffm_dispatch_redirect(greg_t *registers, ffm_place kind);

/* What the places call (dispatch.c). */
void ffm_dispatch_begin(void);
void ffm_dispatch_forked(void);
void ffm_dispatch_child_begins(void);
void ffm_dispatch_child_over(void);

#endif

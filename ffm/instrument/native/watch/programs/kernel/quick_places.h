/* Places where the program's system calls are made without a signal: jumps to them stand in the program's code in front
 * of system calls that it makes often (call_sites.h). The kernel lets calls in our own code through. A place first asks
 * us about each call, and then either makes it or lets the program go on to its own. */
#ifndef FFM_QUICK_PLACES_H
#define FFM_QUICK_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* In the handler of a system call, with its context: this code has made a call that may be made in a place. If it does
 * so often, its next calls are led there. Nothing happens where the code has another form, is not that of a file, must
 * not be written, or cannot be changed at once, or if all places are taken. */
void ffm_quick_place_called(const ucontext_t *context);

/* Change no more code: the program may have forbidden it. */
void ffm_quick_places_stop(void);

/* A handler of the program has interrupted code: if that is in a place, and its call has not begun or is answered, let
 * it go on where the program's own code would be then. */
void ffm_quick_place_leave(ucontext_t *interrupted);

/* In a forked child, where a thread that no longer exists may have been changing code. */
void ffm_quick_places_after_fork(void);

/* What the places call (quick_calls.c): the first decides whether to make a call, with its six arguments; the second is
 * called afterwards in either case. The call is made unless the thread-local ffm_quick_call_made is false by then. The
 * places preserve what the kernel preserves, of vector registers only the lower halves: neither function may use the
 * upper ones. */
bool ffm_quick_call_begins(uint64_t number, const uint64_t *arguments);
void ffm_quick_call_over(void);

#endif

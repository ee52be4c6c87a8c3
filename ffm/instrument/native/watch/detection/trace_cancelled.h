/* Threads that are cancelled (pthread_cancel) while the trace watch follows them. The C library's handler of the signal
 * unwinds the stack from where the signal came. In the translation no unwinder finds its way, and the thread would end
 * without its destructors and clean-up functions. So the handler is told the place in the program's own code, and is
 * followed from there. */
#ifndef FFM_TRACE_CANCELLED_H
#define FFM_TRACE_CANCELLED_H

#include <stdbool.h>
#include <stdint.h>

/* How the calling thread is made to be followed again, and whether it is followed at all. */
typedef struct {
    bool (*followed)(void);
    void (*again)(void);
} ffm_follower;

/* A C library before 2.34 has its handler already, later ones install it in the first pthread_cancel. */
void ffm_trace_cancelled_open(const ffm_follower *follower);

/* Before each system call of a thread that is followed, with the address of its instruction, the stack pointer, and the
 * arguments. */
void ffm_trace_cancelled_before(uint64_t instruction, uint64_t stack, uint64_t number, const uint64_t *arguments);

#endif

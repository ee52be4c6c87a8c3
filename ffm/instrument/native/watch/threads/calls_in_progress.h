/* The memory that system calls in progress use. The kernel refuses a call whose memory is protected meanwhile. */
#ifndef FFM_CALLS_IN_PROGRESS_H
#define FFM_CALLS_IN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Where what a call uses begins, among what the thread's calls use: a handler may interrupt one and make others. */
typedef struct {
    uint32_t first;
} ffm_call_in_progress;

/* The calling thread is about to make a call. */
void ffm_call_in_progress_begins(ffm_call_in_progress *call, uint64_t number);

/* It uses [start, end). Add this before you ask whether that is protected: who protects it later finds it here. Without
 * effect outside of a call. */
void ffm_call_in_progress_uses(uint64_t start, uint64_t end, bool writing);

/* Whether the call, for which the kernel found some memory protected, is to be made again. `is_closed` tells whether
 * a part of what it uses is protected now. */
bool ffm_call_in_progress_again(const ffm_call_in_progress *call, bool (*is_closed)(uint64_t start, uint64_t end));

/* The kernel has answered. */
void ffm_call_in_progress_over(const ffm_call_in_progress *call);

/* Whether calls of other threads use some of [start, end), or write there. Ask when calls that begin would find it
 * protected, before it is. */
bool ffm_calls_in_progress_use(uint64_t start, uint64_t end, bool writing_only);

/* A child that ran as the calling thread is gone, perhaps within a call. */
void ffm_calls_in_progress_child_over(void);

/* In a forked child, where the calling thread alone continues. */
void ffm_calls_in_progress_after_fork(void);

#endif

/* The memory that system calls in progress use. The kernel refuses a call whose memory is protected meanwhile. */
#ifndef FFM_CALLS_IN_PROGRESS_H
#define FFM_CALLS_IN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Where a call's memory begins among that of all the thread's calls: a handler may interrupt one call and make
 * others. */
typedef struct {
    uint32_t first;
} ffm_call_in_progress;

/* The calling thread is about to make a call. `admitted`: the kernel may use pages that a key closes (keys.h). */
void ffm_call_in_progress_begins(ffm_call_in_progress *call, uint64_t number, bool admitted);

/* It uses [start, end). Add this before asking whether it is protected: whoever protects it later finds it here. Has no
 * effect outside of a call. */
void ffm_call_in_progress_uses(uint64_t start, uint64_t end, bool writing);

/* Whether the call, for which the kernel found some memory protected, is to be made again. `is_closed` tells whether
 * a part of what it uses is protected now. */
bool ffm_call_in_progress_again(const ffm_call_in_progress *call, bool (*is_closed)(uint64_t start, uint64_t end));

/* The kernel has answered. */
void ffm_call_in_progress_over(const ffm_call_in_progress *call);

/* The same for a call that is made without a handler (quick_calls.h). A thread makes one of these at a time; it uses
 * [start, end), which may be empty. False if there is no room yet: a thread gets it with its first call above. A
 * handler of the program that interrupts either function ends that call. */
bool ffm_quick_call_in_progress_begins(uint64_t number, uint64_t start, uint64_t end, bool writing, bool admitted);
void ffm_quick_call_in_progress_over(void);

/* What is about to be closed. */
typedef struct {
    uint64_t start, end;
    uint64_t first_page, last_page; /* the whole pages that it lies on */
    bool by_key;                    /* calls that are admitted can use the rest of these pages */
    bool writing_only;
} ffm_closing;

/* Whether calls of other threads use some of it, or would be refused. Ask before it is closed, but once beginning calls
 * would find it closed. */
bool ffm_calls_in_progress_use(const ffm_closing *closing);

/* A child that ran as the calling thread is gone, perhaps within a call. */
void ffm_calls_in_progress_child_over(void);

/* In a forked child, where the calling thread alone continues. */
void ffm_calls_in_progress_after_fork(void);

#endif

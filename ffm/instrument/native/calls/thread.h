/* What the collector knows about each thread of the program. */
#ifndef FFM_THREAD_H
#define FFM_THREAD_H

#include <stdbool.h>

#include "known_stacks.h"
#include "packing.h"
#include "repeated_stacks.h"
#include "wrappers.h"

typedef struct {
    ffm_packer operations;
    ffm_packer contents;
    ffm_packer parts;
    ffm_packer gpu_times;
    ffm_stream resumptions;
    uint32_t number;
    uint32_t kernel_id;
    uint32_t depth;      /* of nested driver calls; the outermost one is recorded */
    uint32_t bypass;     /* calls that the collector itself makes are not recorded */
    uint64_t wait_start; /* of the current wait, 0 if there is none */
    uint32_t wait_depth;
    uint64_t wait;       /* nanoseconds waited in the outermost call so far */
    uint32_t waits;      /* and how often */
    uint64_t first_wait; /* when it began to wait for the first time, if it did */
    uint32_t wait_stack; /* of a wait under no public call */
    uint32_t wait_probe;
    uint32_t probe_after; /* nanoseconds spent in the probe after the thread's last call */
    uint32_t usual_after; /* the same after a call whose end was only recorded, when it was last measured; 0: never */
    bool wait_truncated;
    bool wait_passes;       /* a private wait is not recorded */
    bool passing;           /* the current call of a function that was attached to is not recorded */
    void *left_out;         /* how many calls of each function were not recorded; NULL for none (portion.c) */
    size_t left_out_bytes;  /* mapped for that */
    uint32_t enqueued;      /* index on its stream of the current call's work */
    void *timing;           /* and what times it on the GPU; NULL if nothing (gpu_times.c) */
    void *delivery;         /* a buffer for what it downloads; NULL if there is none (delivery.c) */
    ffm_operation attached; /* the current call of a function that was attached to */
    uint64_t attached_arguments[FFM_MAX_ARGUMENTS];
    ffm_repeated_stacks callers; /* of the driver */
    ffm_known_stacks clock_readers;
    ffm_known_stacks accessors; /* of watched memory */
} ffm_thread;

/* State of the calling thread, created on first use; NULL if memory is short, or if the recording is another
 * process's. */
ffm_thread *ffm_thread_self(void);

/* Whether at most one thread of the process has had a state so far. */
bool ffm_thread_is_only(void);

/* The calling thread's number in the recording, also before its state is created. Safe in signal handlers. */
uint32_t ffm_thread_number(void);

/* Call this for each new thread, with what pthread_self returns there, and its number in the recording. */
void ffm_thread_on_new(void (*handler)(uint64_t name, uint32_t number));

/* Call this in each of them before it ends. */
void ffm_thread_on_end(void (*handler)(void));

/* The same as ffm_thread_self; NULL if it was not created. Safe in signal handlers. */
ffm_thread *ffm_thread_peek(void);

/* In a forked child: the surviving thread starts again in the child's recording. */
void ffm_thread_after_fork(void);

#endif

/* Time stamps of the collector. */
#ifndef FFM_CLOCK_H
#define FFM_CLOCK_H

#include <stdint.h>
#include <time.h>

/* clock_gettime without the hook that watches the program's use of it. */
extern int (*ffm_clock)(clockid_t, struct timespec *);

/* CLOCK_MONOTONIC in nanoseconds: one scale for all threads, processes and stages (16 ns through the vDSO). */
static inline uint64_t ffm_now(void)
{
    struct timespec now;
    ffm_clock(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Processor time of this thread in nanoseconds; a system call. */
static inline uint64_t ffm_thread_time(void)
{
    struct timespec used;
    ffm_clock(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

#endif

/* A clock of the calling thread's processor time that sends it SIGURG once a period.
 *
 * Why SIGURG: programs ignore it by default, must expect it at any time, and use it for nothing else. Go sends it to
 * its threads for the same reasons (its proposal 24543, "non-cooperative preemption").
 *
 * By perf_event_open(2), the signal comes only while the thread runs code of its own, so no system call is interrupted.
 * Where that is forbidden, a timer takes its place (timer_create(2)), which is as coarse as the kernel's tick. */
#ifndef FFM_SAMPLE_CLOCK_H
#define FFM_SAMPLE_CLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { FFM_SAMPLE_SIGNAL = SIGURG };

/* Nanoseconds. A prime number of microseconds, so that loops of a round length do not keep step with it. In virtual
 * machines, which each interrupt leaves, a sample takes 30 to 60 microseconds, nearly all of it outside of our handler:
 * a millisecond would cost 3 to 6 % of the processor's time. */
enum { FFM_SAMPLE_PERIOD = 4001 * 1000 };

typedef struct {
    void *page; /* mapped from the event, which lasts as long; NULL if there is none */
    int file;   /* the number by which its signals name it; it is closed */
    int timer;  /* in its place; -1 if there is none */
    bool runs;
} ffm_sample_clock;

/* Start it for the calling thread. Returns false if the kernel allows neither. */
bool ffm_sample_clock_start(ffm_sample_clock *clock);

/* Nanoseconds of processor time that a signal to the thread stands for; 0 if the clock did not send it. */
uint64_t ffm_sample_clock_told(const ffm_sample_clock *clock, const siginfo_t *info);

void ffm_sample_clock_stop(ffm_sample_clock *clock);

#endif

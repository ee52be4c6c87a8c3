/* A clock of a thread's processor time that sends it SIGURG once a period.
 *
 * Why SIGURG: programs ignore it by default, must expect it at any time, and use it for nothing else. Go sends it to
 * its threads for the same reasons (its proposal 24543, "non-cooperative preemption").
 *
 * A timer of the thread's processor time (timer_create(2)) costs nothing between its signals, not even where the thread
 * falls asleep. The kernel looks at it at each tick, 100 to 1000 times a second as the kernel was built.
 *
 * Before Linux 5.11 its signal can interrupt a system call. An event of perf_event_open(2) then takes its place: its
 * signal comes only while the thread runs code of its own, but each time the thread falls asleep and wakes costs
 * microseconds. If the chosen one is forbidden, or no timer is left, the other takes its place. */
#ifndef FFM_SAMPLE_CLOCK_H
#define FFM_SAMPLE_CLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { FFM_SAMPLE_SIGNAL = SIGURG };

/* Nanoseconds between the signals of an event. A prime number of microseconds, so that loops of a round length do not
 * keep step with it. In virtual machines, which each of its interrupts leaves, a millisecond would cost 3 % of the
 * processor's time. */
enum { FFM_SAMPLE_EVENT_PERIOD = 4001 * 1000 };

typedef struct {
    void *page;      /* mapped from the event, which lasts as long; NULL if there is none */
    int file;        /* the number by which its signals name it; it is closed */
    int timer;       /* -1 if there is none */
    uint32_t period; /* nanoseconds */
    bool runs;
} ffm_sample_clock;

/* Start it for a thread of the process, by its number in the kernel. Returns false if the kernel allows neither a timer
 * nor an event. */
bool ffm_sample_clock_start(ffm_sample_clock *clock, pid_t thread);

/* Nanoseconds of processor time that a signal to the thread stands for; 0 if the clock did not send it. */
uint64_t ffm_sample_clock_told(const ffm_sample_clock *clock, const siginfo_t *info);

void ffm_sample_clock_stop(ffm_sample_clock *clock);

/* The same in the clock's own thread, which blocks the signal: also takes back a signal that is pending. */
void ffm_sample_clock_take_back(ffm_sample_clock *clock);

#endif

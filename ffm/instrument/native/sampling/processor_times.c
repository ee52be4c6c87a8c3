#include "processor_times.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "sink.h"

/* A thread that has made driver calls, and has not ended. */
typedef struct {
    pid_t thread; /* in the kernel */
    uint32_t number;
} living;

/* If there are more threads at once, nothing is known of the others. They are listed here because libraries that are
 * loaded late have little room for thread-local variables. */
enum { MOST_LISTED = 4096 };

static struct {
    pthread_mutex_t lock;
    bool open;
    bool closes; /* at the process's end */
    uint32_t count;
    living listed[MOST_LISTED];
    ffm_stream records;
} times = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The calling thread in the list, or NULL. Under the lock. */
static living *self(void)
{
    const pid_t thread = gettid();
    for (uint32_t i = 0; i < times.count; i++)
        if (times.listed[i].thread == thread)
            return &times.listed[i];
    return NULL;
}

static uint64_t process_time(void)
{
    struct timespec used;
    ffm_clock(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void append(ffm_processor_time taken)
{
    ffm_processor_time *out = ffm_sink_reserve(&times.records, FFM_CHUNK_PROCESSOR_TIMES, 0, sizeof taken);
    if (out == NULL)
        return;
    taken.time = ffm_now();
    taken.process_ran = process_time();
    *out = taken;
    ffm_sink_commit(&times.records, sizeof taken);
}

/* Nothing is known of a thread if the kernel does not count (CONFIG_SCHED_INFO), or there is no /proc. */
static void note(const living *one)
{
    char path[64], text[96];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)one->thread);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = '\0';
    char *end;
    const uint64_t ran = strtoull(text, &end, 10);
    const uint64_t delayed = strtoull(end, NULL, 10);
    if (ran > 0)
        append((ffm_processor_time){.ran = ran, .delayed = delayed, .number = one->number});
}

static void close_times(void)
{
    pthread_mutex_lock(&times.lock);
    for (uint32_t i = 0; i < times.count; i++)
        note(&times.listed[i]);
    times.count = 0;
    pthread_mutex_unlock(&times.lock);
}

static uint32_t processors(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return (uint32_t)CPU_COUNT(&allowed);
    return (uint32_t)sysconf(_SC_NPROCESSORS_ONLN); /* more of them than the set has room for */
}

static void begin(void)
{
    times.open = true;
    append((ffm_processor_time){.number = FFM_NO_THREAD, .processors = processors()});
}

void ffm_processor_times_open(void)
{
    pthread_mutex_lock(&times.lock);
    if (!times.open)
        begin();
    if (!times.closes)
        times.closes = atexit(close_times) == 0;
    pthread_mutex_unlock(&times.lock);
}

void ffm_processor_times_thread(uint32_t number)
{
    pthread_mutex_lock(&times.lock);
    living *listed = self(); /* one that ended unseen may have had the same name in the kernel */
    if (listed == NULL && times.open && times.count < MOST_LISTED)
        listed = &times.listed[times.count++];
    if (listed != NULL)
        *listed = (living){gettid(), number};
    pthread_mutex_unlock(&times.lock);
}

void ffm_processor_times_thread_ends(void)
{
    pthread_mutex_lock(&times.lock);
    living *listed = self();
    if (listed != NULL) {
        note(listed);
        *listed = times.listed[--times.count];
    }
    pthread_mutex_unlock(&times.lock);
}

void ffm_processor_times_after_fork(uint32_t number)
{
    const bool open = times.open;
    pthread_mutex_init(&times.lock, NULL);
    times.count = 0;
    times.open = false;
    ffm_sink_release(&times.records);
    times.records = (ffm_stream){0};
    if (!open)
        return;
    begin();
    ffm_processor_times_thread(number);
}

#include "maps.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "kernel.h"

enum { STACKS = 4096, FITTING = 16, LINE = 512 };

typedef struct {
    uint64_t start, end;
} span;

static struct {
    uint32_t locked;     /* process number of the thread that holds it; 0 if it is free */
    uint64_t generation; /* incremented when mappings change */
    uint64_t read;       /* generation of `fitting` */
    span fitting[FITTING];
    uint32_t fitting_count, fitting_next;
    span stacks[STACKS];
    uint32_t stack_count;
    bool stacks_full;
} maps;

/* Held for a few instructions, and never while memory is allocated or mapped. In a forked child it may belong to
 * another thread of the parent, which does not run there; guarded functions can be called in the child before any fork
 * handler runs (preload/gate.c stops a child in one). */
static void lock(void)
{
    const uint32_t here = (uint32_t)ffm_kernel(SYS_getpid, 0, 0, 0, 0);
    uint32_t holder = 0;
    while (!__atomic_compare_exchange_n(&maps.locked, &holder, here, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        if (holder == here) {
            ffm_kernel(SYS_sched_yield, 0, 0, 0, 0);
            holder = 0;
        }
}

static void unlock(void)
{
    __atomic_store_n(&maps.locked, 0, __ATOMIC_RELEASE);
}

void ffm_maps_changed(void)
{
    __atomic_add_fetch(&maps.generation, 1, __ATOMIC_ACQ_REL);
}

void ffm_maps_stack(uint64_t start, uint64_t end)
{
    lock();
    if (maps.stack_count < STACKS)
        maps.stacks[maps.stack_count++] = (span){start, end};
    else
        maps.stacks_full = true;
    unlock();
}

void ffm_maps_unmapped(uint64_t start, uint64_t end)
{
    lock();
    for (uint32_t i = maps.stack_count; i > 0; i--)
        if (maps.stacks[i - 1].start >= start && maps.stacks[i - 1].end <= end)
            maps.stacks[i - 1] = maps.stacks[--maps.stack_count];
    unlock();
    ffm_maps_changed();
}

static span own_stack(void)
{
    pthread_attr_t attributes;
    void *start;
    size_t bytes;
    span none = {0, 0};
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return none;
    bool known = pthread_attr_getstack(&attributes, &start, &bytes) == 0;
    pthread_attr_destroy(&attributes);
    return known ? (span){(uint64_t)start, (uint64_t)start + bytes} : none;
}

bool ffm_maps_beside_stack(uint64_t start, uint64_t end)
{
    static __thread span stack __attribute__((tls_model("initial-exec")));
    if (stack.end == 0)
        stack = own_stack();
    const uint64_t here = (uint64_t)__builtin_frame_address(0);
    return stack.start <= here && here < stack.end && (end <= stack.start || stack.end <= start);
}

/* A line of /proc/self/maps: start-end perms offset device inode path. */
static bool fits(const char *line, span *out)
{
    char permissions[5], path[64] = "";
    unsigned long start, end;
    if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %63s", &start, &end, permissions, path) < 3)
        return false;
    *out = (span){start, end};
    return strcmp(permissions, "rw-p") == 0 && strcmp(path, "[stack]") != 0 && strcmp(path, "[heap]") != 0;
}

/* How far private memory extends from `start` on, over mappings without a gap. */
static uint64_t reach(uint64_t start)
{
    FILE *file = fopen("/proc/self/maps", "re");
    if (file == NULL)
        return start;
    char line[LINE];
    uint64_t reached = start;
    span at;
    while (fgets(line, sizeof line, file) != NULL)
        if (fits(line, &at) && at.start <= reached && reached < at.end)
            reached = at.end;
    fclose(file);
    return reached;
}

/* Whether the range contains a thread's stack. Locked. */
static bool holds_stack(uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < maps.stack_count; i++)
        if (maps.stacks[i].start < end && start < maps.stacks[i].end)
            return true;
    return maps.stacks_full;
}

/* Whether an earlier look already showed that private memory extends this far. Locked. */
static bool known_to_fit(uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < maps.fitting_count; i++)
        if (maps.fitting[i].start <= start && end <= maps.fitting[i].end)
            return true;
    return false;
}

bool ffm_maps_private(uint64_t start, uint64_t end)
{
    lock();
    const uint64_t generation = __atomic_load_n(&maps.generation, __ATOMIC_ACQUIRE);
    if (generation != maps.read)
        maps.fitting_count = maps.fitting_next = 0;
    maps.read = generation;
    const bool stack = holds_stack(start, end), known = known_to_fit(start, end);
    unlock();
    if (stack || known)
        return known && !stack;
    const uint64_t reached = reach(start);
    if (reached < end)
        return false;
    lock();
    if (maps.read == generation) {
        maps.fitting[maps.fitting_next++ % FITTING] = (span){start, reached};
        if (maps.fitting_count < FITTING)
            maps.fitting_count++;
    }
    unlock();
    return true;
}

#include "maps.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { STACKS = 4096, FITTING = 16, LINE = 512 };

typedef struct {
    uint64_t start, end;
} span;

static struct {
    pthread_mutex_t lock;
    uint64_t generation; /* raised when mappings change */
    uint64_t read;       /* generation of `fitting` */
    span fitting[FITTING];
    uint32_t fitting_count;
    span stacks[STACKS];
    uint32_t stack_count;
    bool stacks_full;
} maps = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ffm_maps_changed(void)
{
    __atomic_add_fetch(&maps.generation, 1, __ATOMIC_ACQ_REL);
}

void ffm_maps_stack(uint64_t start, uint64_t end)
{
    pthread_mutex_lock(&maps.lock);
    if (maps.stack_count < STACKS)
        maps.stacks[maps.stack_count++] = (span){start, end};
    else
        maps.stacks_full = true;
    pthread_mutex_unlock(&maps.lock);
}

void ffm_maps_unmapped(uint64_t start, uint64_t end)
{
    pthread_mutex_lock(&maps.lock);
    for (uint32_t i = maps.stack_count; i > 0; i--)
        if (maps.stacks[i - 1].start >= start && maps.stacks[i - 1].end <= end)
            maps.stacks[i - 1] = maps.stacks[--maps.stack_count];
    pthread_mutex_unlock(&maps.lock);
    ffm_maps_changed();
}

void ffm_maps_after_fork(void)
{
    pthread_mutex_init(&maps.lock, NULL); /* another thread of the parent may have held it */
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

/* How far private memory reaches from `start` on, over mappings without a gap. */
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

bool ffm_maps_private(uint64_t start, uint64_t end)
{
    pthread_mutex_lock(&maps.lock);
    bool good = !maps.stacks_full;
    for (uint32_t i = 0; i < maps.stack_count && good; i++)
        good = maps.stacks[i].end <= start || end <= maps.stacks[i].start;
    uint64_t generation = __atomic_load_n(&maps.generation, __ATOMIC_ACQUIRE);
    if (generation != maps.read)
        maps.fitting_count = 0;
    maps.read = generation;
    bool known = false;
    for (uint32_t i = 0; i < maps.fitting_count && !known; i++)
        known = maps.fitting[i].start <= start && end <= maps.fitting[i].end;
    if (good && !known) {
        uint64_t reached = reach(start);
        good = reached >= end;
        if (good)
            maps.fitting[maps.fitting_count++ % FITTING] = (span){start, reached};
        if (maps.fitting_count > FITTING)
            maps.fitting_count = FITTING;
    }
    pthread_mutex_unlock(&maps.lock);
    return good;
}

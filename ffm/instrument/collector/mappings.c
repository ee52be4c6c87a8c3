#include "mappings.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { KNOWN = 64, LINE = 512 };

/* Private stretches of memory that were met, without a gap. */
static struct {
    pthread_mutex_t lock;
    uint64_t generation; /* raised when mappings change */
    uint64_t read;       /* generation of `known` */
    uint32_t count;
    struct {
        uint64_t start, end;
    } known[KNOWN];
} mappings = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ffm_mappings_changed(void)
{
    __atomic_add_fetch(&mappings.generation, 1, __ATOMIC_RELAXED);
}

/* A line of /proc/self/maps: start-end permissions offset device inode path. Whether the memory is this process's
 * alone; anonymous shared memory, which only forked children share, counts as such: they are watched too. */
static bool parse(const char *line, uint64_t *from, uint64_t *to)
{
    char permissions[5], path[32] = "";
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %31s", from, to, permissions, path) < 3)
        return false;
    return permissions[3] == 'p' || strcmp(path, "/dev/zero") == 0;
}

/* How far private memory reaches around `address`; false where that is shared, or nothing. */
static bool private_around(uint64_t address, uint64_t *start, uint64_t *end)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[LINE];
    uint64_t from, to;
    bool found = false;
    *start = *end = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        bool alone = parse(line, &from, &to);
        if (!alone || from != *end) {
            if (found)
                break;
            *start = from;
        }
        *end = alone ? to : 0;
        found = found || (alone && address >= *start && address < to);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

bool ffm_mappings_shared(uint64_t start, uint64_t end)
{
    pthread_mutex_lock(&mappings.lock);
    uint64_t now = __atomic_load_n(&mappings.generation, __ATOMIC_RELAXED);
    if (mappings.read != now)
        mappings.count = 0;
    mappings.read = now;
    bool alone = false;
    for (uint32_t i = 0; i < mappings.count && !alone; i++)
        alone = mappings.known[i].start <= start && end <= mappings.known[i].end;
    uint64_t from, to;
    if (!alone && private_around(start, &from, &to)) {
        alone = end <= to;
        if (mappings.count == KNOWN)
            mappings.count = 0;
        mappings.known[mappings.count].start = from;
        mappings.known[mappings.count++].end = to;
    }
    pthread_mutex_unlock(&mappings.lock);
    return !alone;
}

void ffm_mappings_after_fork(void)
{
    pthread_mutex_init(&mappings.lock, NULL);
    ffm_mappings_changed();
}

#include "spawns.h"

#include <errno.h>
#include <stddef.h>

#include "system_calls.h"
#include "watch.h"

typedef uint64_t word;
typedef word (*function)(word, word, word, word, word, word);

enum { SPAWN, SPAWN_IN_PATH, PLACES };

static const char *const names[PLACES] = {"posix_spawn", "posix_spawnp"};
static void *originals[PLACES];

static word spawn(uint32_t place, word child, word path, word actions, word attributes, word words, word environment)
{
    void *original;
    const int error = errno;
    while ((original = __atomic_load_n(&originals[place], __ATOMIC_ACQUIRE)) == NULL)
        __builtin_ia32_pause();
    if (ffm_watch_active())
        ffm_system_call_starts(path, words, environment);
    errno = error;
    return ((function)(uintptr_t)original)(child, path, actions, attributes, words, environment);
}

static word wrap_spawn(word a, word b, word c, word d, word e, word f)
{
    return spawn(SPAWN, a, b, c, d, e, f);
}

static word wrap_spawn_in_path(word a, word b, word c, word d, word e, word f)
{
    return spawn(SPAWN_IN_PATH, a, b, c, d, e, f);
}

const char *ffm_spawns_name(uint32_t place)
{
    return place < PLACES ? names[place] : NULL;
}

void *ffm_spawns_wrapper(uint32_t place)
{
    if (originals[place] != NULL)
        return NULL;
    return place == SPAWN ? (void *)(uintptr_t)wrap_spawn : (void *)(uintptr_t)wrap_spawn_in_path;
}

void ffm_spawns_bind(uint32_t place, void *original)
{
    __atomic_store_n(&originals[place], original, __ATOMIC_RELEASE);
}

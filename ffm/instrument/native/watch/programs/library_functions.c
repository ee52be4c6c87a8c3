#include "library_functions.h"

#include <errno.h>
#include <linux/limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/types.h>

#include "guarded.h"
#include "own_pages.h"
#include "questions.h"
#include "ranges.h"
#include "system_calls.h"
#include "thread.h"
#include "traced.h"
#include "watched.h"

typedef uint64_t word;
typedef void (*release_function)(void *);
typedef word (*spawn_function)(word, word, word, word, word, word);

enum { FREE, SPAWN, SPAWN_BY_NAME, GROUPS };

/* The block's size matters only if a range ends behind its start. */
static bool may_be_watched(const void *block)
{
    if (block == NULL || !ffm_watch_active() || !ffm_ranges_end_behind((uint64_t)block) || ffm_ranges_held())
        return false;
    const ffm_thread *thread = ffm_thread_peek();
    return thread == NULL || (thread->depth == 0 && thread->bypass == 0);
}

static void wrap_free(void *block)
{
    const release_function original = (release_function)ffm_followed_original(&ffm_library_functions[FREE]);
    const int error = errno;
    if (ffm_own_pages_free(block))
        return;
    if (may_be_watched(block))
        ffm_watch_freed((uint64_t)block, malloc_usable_size(block));
    errno = error;
    original(block);
}

/* A block that does not come from the program's allocator. */
static void freed_result(void *block, size_t bytes)
{
    const int error = errno;
    if (may_be_watched(block))
        ffm_watch_freed((uint64_t)block, bytes);
    errno = error;
}

void ffm_library_functions_open(void)
{
    ffm_own_pages_open(freed_result);
}

static word spawn(int place, word child, word path, word actions, word attributes, word words, word environment)
{
    const int error = errno;
    const spawn_function original = (spawn_function)ffm_followed_original(&ffm_library_functions[place]);
    if (ffm_watch_active())
        ffm_system_call_starts(path, words, environment);
    errno = error;
    return original(child, path, actions, attributes, words, environment);
}

static word wrap_posix_spawn(word a, word b, word c, word d, word e, word f)
{
    return spawn(SPAWN, a, b, c, d, e, f);
}

static word wrap_posix_spawnp(word a, word b, word c, word d, word e, word f)
{
    return spawn(SPAWN_BY_NAME, a, b, c, d, e, f);
}

static bool pages_on(void)
{
    return !ffm_trace_on();
}

/* The C library makes each thread set its groups, also the instruments' threads, and ends the program if their results
 * differ. A page is open to the system calls of one thread only, so all get a copy. */
static word wrap_setgroups(word count, word list, word c, word d)
{
    typedef word (*function)(word, word, word, word);
    const function original = (function)ffm_followed_original(&ffm_library_functions[GROUPS]);
    static gid_t copy[NGROUPS_MAX];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (count > NGROUPS_MAX || !ffm_ranges_overlap(list, list + count * sizeof *copy))
        return original(count, list, c, d);
    pthread_mutex_lock(&lock);
    const bool read = ffm_guarded_read(copy, list, count * sizeof *copy);
    const word result = original(count, read ? (word)copy : list, c, d);
    pthread_mutex_unlock(&lock);
    return result;
}

ffm_followed ffm_library_functions[] = {[FREE] = {FFM_FOLLOWED(free)},
                                        [SPAWN] = {FFM_FOLLOWED(posix_spawn), .wanted = ffm_trace_on},
                                        [SPAWN_BY_NAME] = {FFM_FOLLOWED(posix_spawnp), .wanted = ffm_trace_on},
                                        [GROUPS] = {FFM_FOLLOWED(setgroups), .wanted = pages_on},
                                        {.name = NULL}};

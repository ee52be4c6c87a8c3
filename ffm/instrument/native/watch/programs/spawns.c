#include "spawns.h"

#include <errno.h>

#include "system_calls.h"
#include "traced.h"
#include "watched.h"

typedef uint64_t word;
typedef word (*function)(word, word, word, word, word, word);

static word spawn(const ffm_followed *row, word child, word path, word actions, word attributes, word words,
                  word environment)
{
    const int error = errno;
    const function original = (function)ffm_followed_original(row);
    if (ffm_watch_active())
        ffm_system_call_starts(path, words, environment);
    errno = error;
    return original(child, path, actions, attributes, words, environment);
}

static word wrap_posix_spawn(word a, word b, word c, word d, word e, word f)
{
    return spawn(&ffm_spawns[0], a, b, c, d, e, f);
}

static word wrap_posix_spawnp(word a, word b, word c, word d, word e, word f)
{
    return spawn(&ffm_spawns[1], a, b, c, d, e, f);
}

ffm_followed ffm_spawns[] = {{FFM_FOLLOWED(posix_spawn), .wanted = ffm_trace_on},
                             {FFM_FOLLOWED(posix_spawnp), .wanted = ffm_trace_on},
                             {.name = NULL}};

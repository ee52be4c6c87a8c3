/* What guards have in common: how they are called, and the functions that they stand before. */
#ifndef FFM_REMEDY_GUARD_CALLS_H
#define FFM_REMEDY_GUARD_CALLS_H

#include <stdint.h>

typedef uint64_t word;
typedef word (*plain_function)(word, word, word, word, word, word);

enum {
#define BUFFER(name, address, bytes) GUARD_##name,
#define VECTOR(name) GUARD_##name,
#define MESSAGES(name, many) GUARD_##name,
#define STRUCTURE(name) GUARD_##name,
#define PROCESS(name) GUARD_##name,
#define SIGNAL(name) GUARD_##name,
#define OTHER(name) GUARD_##name,
#include "guarded_functions.def"
    GUARDS
};

#define PARAMETERS word a, word b, word c, word d, word e, word f
#define ARGUMENTS a, b, c, d, e, f

/* The guarded function itself. */
plain_function ffm_guard_original(uint32_t guard);

/* A system call that does nothing if it meets a closed page. */
word ffm_guard_again_where_closed(uint32_t guard, PARAMETERS);

#endif

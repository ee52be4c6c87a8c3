/* A driver in place of a real one, for tests of the collector without Frida: it copies, and else does nothing. */
#ifndef FFM_STAND_IN_DRIVER_H
#define FFM_STAND_IN_DRIVER_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "collector.h"

typedef int (*synchronize)(void);
typedef int (*download)(void *, uint64_t, size_t);
typedef int (*upload)(uint64_t, const void *, size_t);
typedef int (*launch)(uint64_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, uint64_t, void **,
                      void **);

static inline int driver_synchronize(void)
{
    return 0;
}

static inline int driver_download(void *destination, uint64_t source, size_t bytes)
{
    memcpy(destination, (const void *)source, bytes);
    return 0;
}

static inline int driver_upload(uint64_t destination, const void *source, size_t bytes)
{
    memcpy((void *)destination, source, bytes);
    return 0;
}

static inline int driver_launch(uint64_t kernel, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
    (void)kernel, (void)a, (void)b, (void)c, (void)d, (void)e;
    return 0;
}

static inline int driver_create_event(uint64_t *event, unsigned flags)
{
    static uint64_t events;
    *event = __atomic_add_fetch(&events, 1, __ATOMIC_RELAXED);
    return (int)flags;
}

static inline int driver_record_event(uint64_t event, uint64_t stream)
{
    assert(event != 0 && stream == 0);
    return 0;
}

/* Hook one of these functions as Frida does: returns what the program calls. */
static inline void *hook(const char *name, void *original)
{
    for (uint32_t i = 0; i < FFM_FUNCTION_COUNT; i++) {
        if (strcmp(ffm_catalogue[i].name, name) == 0) {
            ffm_collector_bind(i, original, original);
            return ffm_collector_wrapper(i);
        }
    }
    fprintf(stderr, "the catalogue has no %s\n", name);
    abort();
}

#endif

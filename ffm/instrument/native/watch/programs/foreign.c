#include "foreign.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "stacks.h"

enum { STRETCHES = 32 };

static struct {
    uint32_t count;
    struct {
        uint64_t start, end;
        bool driver;
    } code[STRETCHES];
} foreign;

static uint32_t known(void)
{
    return __atomic_load_n(&foreign.count, __ATOMIC_ACQUIRE);
}

/* The driver's heap blocks must share no page with watched memory. */
static void separate(uint64_t start, uint64_t end)
{
    typedef void (*noting)(uint64_t, uint64_t);
    const noting note = (noting)(uintptr_t)dlsym(RTLD_DEFAULT, "ffm_driver_blocks_code");
    if (note != NULL) /* the library that provides it is preloaded if memory is watched by page */
        note(start, end);
}

void ffm_foreign_add(uint64_t start, uint64_t end, bool driver)
{
    for (uint32_t i = 0; i < foreign.count; i++)
        if (foreign.code[i].start == start && foreign.code[i].end == end)
            return; /* in a forked child, whose parent noted it */
    if (foreign.count == STRETCHES)
        return; /* its accesses count as the program's */
    foreign.code[foreign.count].start = start;
    foreign.code[foreign.count].end = end;
    foreign.code[foreign.count].driver = driver;
    __atomic_store_n(&foreign.count, foreign.count + 1, __ATOMIC_RELEASE);
    if (driver)
        separate(start, end);
}

static bool holds(uint64_t address, bool driver_only)
{
    for (uint32_t i = 0; i < known(); i++)
        if (foreign.code[i].start <= address && address < foreign.code[i].end &&
            (foreign.code[i].driver || !driver_only))
            return true;
    return false;
}

bool ffm_foreign_holds(uint64_t address)
{
    return holds(address, false);
}

bool ffm_foreign_is_driver(uint64_t address)
{
    return holds(address, true);
}

bool ffm_foreign_knows_driver(void)
{
    for (uint32_t i = 0; i < known(); i++)
        if (foreign.code[i].driver)
            return true;
    return false;
}

bool ffm_foreign_driver_in(uint32_t stack)
{
    uint64_t frames[FFM_MAX_FRAMES];
    const uint32_t depth = ffm_stack_frames(stack, frames, FFM_MAX_FRAMES);
    for (uint32_t i = 0; i < depth; i++)
        if (holds(frames[i], true))
            return true;
    return false;
}

bool ffm_foreign_starts_threads(uint64_t address)
{
    static const char *const libraries[] = {"libc.", "libc-", "libpthread", "libstdc++", "libc++"};
    Dl_info module;
    if (dladdr((const void *)(uintptr_t)address, &module) == 0 || module.dli_fname == NULL)
        return false;
    const char *slash = strrchr(module.dli_fname, '/');
    const char *name = slash == NULL ? module.dli_fname : slash + 1;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strncmp(name, libraries[i], strlen(libraries[i])) == 0)
            return true;
    return false;
}

bool ffm_foreign_driver_started(uint32_t stack)
{
    uint64_t frames[FFM_MAX_FRAMES];
    const uint32_t depth = ffm_stack_frames(stack, frames, FFM_MAX_FRAMES);
    uint32_t outside = 0;
    while (outside < depth && !holds(frames[depth - 1 - outside], true)) {
        if (!ffm_foreign_starts_threads(frames[depth - 1 - outside]))
            return false;
        outside++;
    }
    return outside != 0 && outside < depth;
}

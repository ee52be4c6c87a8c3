#include "in_handler.h"

#include <stdint.h>
#include <string.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "guarded.h"
#include "stacks.h"
#include "unwinding.h"

/* What a handler returns to: the system call rt_sigreturn, by which gdb and unwinders recognise such frames. */
static const uint8_t restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
static const uint8_t short_restorer[] = {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

static bool returns_from_signal(uint64_t address)
{
    uint8_t code[sizeof restorer];
    return ffm_guarded_read(code, address, sizeof code) &&
           (memcmp(code, restorer, sizeof restorer) == 0 || memcmp(code, short_restorer, sizeof short_restorer) == 0);
}

bool ffm_in_handler(void)
{
    uint64_t frames[FFM_MAX_FRAMES];
    ffm_unwinding_begin();
    const int depth = unw_backtrace((void **)frames, FFM_MAX_FRAMES);
    ffm_unwinding_end();
    if (depth == FFM_MAX_FRAMES)
        return true; /* cannot be excluded */
    for (int i = 0; i < depth; i++)
        if (returns_from_signal(frames[i]))
            return true;
    return false;
}

#include "own_dispatch.h"

#include <errno.h>

#include "guarded.h"

enum { OFF = 0, ON = 1, BLOCK = 1 }; /* PR_SYS_DISPATCH_…, SYSCALL_DISPATCH_FILTER_BLOCK */

static __thread struct {
    uint64_t start, bytes; /* where system calls are let through */
    uint64_t selector;     /* address of a byte; 0: all others are wanted */
    bool on;
} asked __attribute__((tls_model("initial-exec")));

int64_t ffm_own_dispatch_set(const uint64_t *arguments)
{
    const uint64_t mode = arguments[1], start = arguments[2], bytes = arguments[3], selector = arguments[4];
    char present;
    if (mode == OFF && start == 0 && bytes == 0 && selector == 0) {
        asked.on = false;
        return 0;
    }
    if (mode != ON || (start != 0 && start + bytes <= start))
        return -EINVAL;
    if (selector != 0 && !ffm_guarded_read(&present, selector, sizeof present))
        return -EFAULT;
    asked.start = start;
    asked.bytes = bytes;
    asked.selector = selector;
    asked.on = true;
    return 0;
}

bool ffm_own_dispatch_wants(uint64_t instruction)
{
    char present = BLOCK;
    if (!asked.on || instruction - asked.start < asked.bytes)
        return false;
    if (asked.selector != 0)
        ffm_guarded_read(&present, asked.selector, sizeof present);
    return present == BLOCK;
}

bool ffm_own_dispatch_is_on(void)
{
    return asked.on;
}

void ffm_own_dispatch_after_fork(void)
{
    asked.on = false;
}

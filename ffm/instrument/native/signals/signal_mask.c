#include "signal_mask.h"

#include <errno.h>
#include <stddef.h>

#include "guarded.h"

static __thread uint64_t withheld __attribute__((tls_model("initial-exec")));
static __thread uint32_t holds __attribute__((tls_model("initial-exec")));
static __thread uint64_t mask_before __attribute__((tls_model("initial-exec"))); /* the outermost hold */

void ffm_signals_hold(void)
{
    if (holds == 0) /* a handler that runs before the mask is set holds and releases by itself */
        mask_before = ffm_signals_set_mask(~FFM_SIGNALS_OURS);
    holds++;
}

void ffm_signals_release(void)
{
    const uint64_t mask = mask_before;
    if (--holds == 0)
        ffm_signals_set_mask(mask);
}

void ffm_signals_unblock(void)
{
    const uint64_t ours = FFM_SIGNALS_OURS;
    ffm_kernel(SYS_rt_sigprocmask, SIG_UNBLOCK, (uint64_t)&ours, 0, sizeof ours);
}

void ffm_signals_withhold(uint64_t *mask)
{
    withheld = *mask & FFM_SIGNALS_OURS;
    *mask &= ~FFM_SIGNALS_OURS;
}

uint64_t ffm_signals_withheld(void)
{
    return withheld;
}

int64_t ffm_signals_program_mask(int how, const uint64_t *set, uint64_t *before, uint64_t *mask)
{
    const uint64_t old = (*mask & ~FFM_SIGNALS_OURS) | withheld;
    uint64_t wanted = old;
    uint64_t given = 0;
    /* Programs use this to test whether memory is readable: the system reads the set first. */
    if (set != NULL && !ffm_guarded_read(&given, (uint64_t)set, sizeof given))
        return -EFAULT;
    if (set != NULL) {
        switch (how) {
        case SIG_BLOCK:
            wanted = old | given;
            break;
        case SIG_UNBLOCK:
            wanted = old & ~given;
            break;
        case SIG_SETMASK:
            wanted = given;
            break;
        default:
            return -EINVAL;
        }
    }
    if (before != NULL && !ffm_guarded_write((uint64_t)before, &old, sizeof old))
        return -EFAULT;
    withheld = wanted & FFM_SIGNALS_OURS;
    *mask = wanted & ~FFM_SIGNALS_OURS;
    return 0;
}

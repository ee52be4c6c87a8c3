#include "signal_mask.h"

#include <errno.h>
#include <stddef.h>

#include "guarded.h"

enum { YIELDS = 1 << 12 }; /* longer than any hold of a thread that has a processor */

static __thread uint64_t withheld __attribute__((tls_model("initial-exec")));
static __thread uint32_t holds __attribute__((tls_model("initial-exec")));
static __thread uint64_t mask_before __attribute__((tls_model("initial-exec"))); /* the outermost hold, or COUNTED */

/* The threads that hold signals without blocking them, as long as the program has no handler; and in place of a mask,
 * that this thread is one of them: the kernel never lets SIGKILL be blocked. */
static uint32_t without_mask;
static const uint64_t COUNTED = UINT64_MAX;

/* Why handlers of the program may run. The first one: nobody has said that there are none. */
static uint32_t reasons = 1;

void ffm_signals_block(void)
{
    __atomic_add_fetch(&reasons, 1, __ATOMIC_SEQ_CST);
}

void ffm_signals_need_not_block(void)
{
    __atomic_sub_fetch(&reasons, 1, __ATOMIC_SEQ_CST);
}

/* Whether the program has no handlers, and whoever installs the first one waits until this hold is over. */
static bool needs_no_mask(void)
{
    if (__atomic_load_n(&reasons, __ATOMIC_SEQ_CST) != 0)
        return false;
    __atomic_add_fetch(&without_mask, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&reasons, __ATOMIC_SEQ_CST) == 0)
        return true;
    __atomic_sub_fetch(&without_mask, 1, __ATOMIC_SEQ_CST);
    return false;
}

void ffm_signals_hold(void)
{
    if (holds == 0) /* a handler that runs before the mask is set holds and releases by itself */
        mask_before = needs_no_mask() ? COUNTED : ffm_signals_set_mask(~FFM_SIGNALS_OURS);
    holds++;
}

void ffm_signals_release(void)
{
    const uint64_t mask = mask_before;
    if (--holds > 0)
        return;
    if (mask == COUNTED)
        __atomic_sub_fetch(&without_mask, 1, __ATOMIC_SEQ_CST);
    else
        ffm_signals_set_mask(mask);
}

void ffm_signals_await_holds(void)
{
    const uint32_t own = holds > 0 && mask_before == COUNTED;
    for (int i = 0; i < YIELDS && __atomic_load_n(&without_mask, __ATOMIC_SEQ_CST) > own; i++)
        ffm_kernel(SYS_sched_yield, 0, 0, 0, 0);
}

void ffm_signals_holds_after_fork(void)
{
    __atomic_store_n(&without_mask, holds > 0 && mask_before == COUNTED, __ATOMIC_SEQ_CST);
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

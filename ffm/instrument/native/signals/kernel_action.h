/* Handlers of signals, in the kernel's own form. */
#ifndef FFM_KERNEL_ACTION_H
#define FFM_KERNEL_ACTION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "kernel.h"

typedef void (*ffm_signal_handler)(int, siginfo_t *, void *);

/* The kernel's own form of struct sigaction on x86-64. */
typedef struct {
    uint64_t handler, flags, restorer, mask;
} ffm_signal_action;

static inline int64_t ffm_signal_action_install(int number, const ffm_signal_action *wanted, ffm_signal_action *before)
{
    return ffm_kernel(SYS_rt_sigaction, (uint64_t)number, (uint64_t)wanted, (uint64_t)before, sizeof(uint64_t));
}

static inline bool ffm_signal_action_calls(const ffm_signal_action *action)
{
    return action->handler != (uint64_t)SIG_DFL && action->handler != (uint64_t)SIG_IGN;
}

#endif

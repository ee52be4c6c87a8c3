/* Which signals are blocked while libunwind has its locks.
 *
 * It sets them, to all and back, by sigprocmask, which lets through those that the C library uses itself. But the C
 * library's thread for timers (SIGEV_THREAD) blocks one of these, and the next tick would end the program. */
#include <dlfcn.h>
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <signal.h>
#include <string.h>

#include "imports.h"
#include "kernel.h"
#include "signal_mask.h"

/* Blocks more signals, or sets them all as they were before, if that is not asked for. */
static int block_more(int how, const sigset_t *set, sigset_t *before)
{
    uint64_t mask;
    memcpy(&mask, set, sizeof mask);
    if (before != NULL) {
        how = SIG_BLOCK;
        mask &= ~FFM_SIGNALS_OURS;
    }
    return (int)ffm_kernel(SYS_rt_sigprocmask, (uint64_t)how, (uint64_t)&mask, (uint64_t)before, sizeof mask);
}

static void *instead(const char *name)
{
    return strcmp(name, "sigprocmask") == 0 || strcmp(name, "pthread_sigmask") == 0 ? (void *)block_more : NULL;
}

__attribute__((constructor)) static void keep_signals_blocked(void)
{
    Dl_info unwinder;
    if (dladdr((void *)unw_backtrace, &unwinder) != 0)
        ffm_imports_lead((uint64_t)unwinder.dli_fbase, instead);
}

/* SIGSEGV and SIGTRAP belong to the watch. The program's own handlers of them are kept here, and called for what is not
 * the watch's; the program sees them as if they were installed. */
#ifndef FFM_SIGNALS_H
#define FFM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

typedef void (*ffm_signal_handler)(int, siginfo_t *, void *);

/* Take the two signals. Handlers run with all other signals held back. */
bool ffm_signals_open(ffm_signal_handler fault, ffm_signal_handler trap);

/* Let the program have a signal that was not ours, as it asked for it. */
void ffm_signals_pass(int number, siginfo_t *info, void *context);

/* Never hold the two signals back in this thread: the kernel ends a process that faults with SIGSEGV blocked. */
void ffm_signals_unblock(void);

/* pthread_sigmask without the hook. */
void ffm_signals_mask(int how, const sigset_t *set, sigset_t *before);

/* What stands in for the program's calls; `original` is the function without its hook. */
int ffm_signals_sigaction(int number, const struct sigaction *action, struct sigaction *before, void *original);
int ffm_signals_sigmask(int how, const sigset_t *set, sigset_t *before, void *original);

#endif

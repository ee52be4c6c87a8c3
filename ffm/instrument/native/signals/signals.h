/* SIGSEGV, SIGBUS, SIGTRAP and SIGSYS belong to the watch. The program's own handlers for them are kept here, and
 * called for signals that are not the watch's; the program sees them as if they were installed. */
#ifndef FFM_SIGNALS_H
#define FFM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel_action.h"
#include "program_handlers.h"

/* Take over these signals. Handlers of faults and traps run with all other signals blocked. */
bool ffm_signals_open(ffm_signal_handler fault, ffm_signal_handler trap, ffm_signal_handler system_call);

/* From now on, call a function before each handler of the program, also before those that it has installed already. */
void ffm_signals_before_handlers(ffm_handler_listener before);

/* The program is about to send a signal to one of its threads. */
void ffm_signals_sent_to_thread(uint64_t number);

/* Pass a signal that was not ours to the program, as it requested. */
void ffm_signals_pass(int number, siginfo_t *info, void *context);

/* The code that ends a handler. */
extern const char ffm_signals_return[] __attribute__((visibility("hidden")));

/* A child of vfork runs in the memory of the thread that started it, with its thread-local variables, while that thread
 * waits; so does one of clone with CLONE_VM and CLONE_VFORK. What it does to signals is its own, until its parent
 * continues. It calls this first, since it may start without handlers (CLONE_CLEAR_SIGHAND). False without memory. */
bool ffm_signals_child_begins(void);
void ffm_signals_child_over(void);

/* Whether such a child is running. */
bool ffm_signals_in_child(void);

/* In a forked child: it may be such a child that forked, and has memory of its own now. */
void ffm_signals_after_fork(void);

/* Replacement for the program's rt_sigaction, which answers as the kernel does. */
int64_t ffm_signals_program_action(int number, const ffm_signal_action *wanted, ffm_signal_action *before);

#endif

/* Guards over the functions of the C library that set handlers and masks of signals. */
#ifndef FFM_REMEDY_SIGNAL_GUARDS_H
#define FFM_REMEDY_SIGNAL_GUARDS_H

#include <signal.h>

#include "guard_calls.h"

#define BUFFER(name, address, bytes)
#define VECTOR(name)
#define MESSAGES(name, many)
#define STRUCTURE(name)
#define PROCESS(name)
#define SIGNAL(name) word ffm_guard_##name(PARAMETERS);
#define OTHER(name)
#include "guarded_functions.def"

/* A handler of ours that the program must never see when it asks for the installed one. */
void ffm_guards_hide(void (*handler)(int, siginfo_t *, void *));

/* The C library's sigaction. */
int ffm_unguarded_sigaction(int number, const struct sigaction *action, struct sigaction *previous);

#endif

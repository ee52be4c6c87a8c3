#include "forks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "unwinding.h"

static ffm_fork_handlers handle;
static bool handled, free_child; /* free_child: releases what its parent held */

static __thread bool here __attribute__((tls_model("initial-exec")));

bool ffm_forks_here(void)
{
    return here;
}

bool ffm_forks_happened(void)
{
    const bool *told = (const bool *)dlsym(RTLD_DEFAULT, "ffm_gate_has_forked");
    return told == NULL || __atomic_load_n(told, __ATOMIC_RELAXED); /* a program that was attached to has no gate */
}

static void before(void)
{
    here = true;
    handle.before();
    ffm_unwinding_before_fork();
}

static void in_parent(void)
{
    here = false;
    ffm_unwinding_forked();
    handle.in_parent();
}

static void in_child(void)
{
    here = false;
    if (free_child)
        return;
    free_child = true;
    ffm_unwinding_after_fork();
    handle.in_child();
}

static void behind_gate(void)
{
    in_child();
    free_child = false;
    if (handle.behind_gate != NULL)
        handle.behind_gate();
}

void ffm_forks_handle(const ffm_fork_handlers *handlers)
{
    if (handled)
        return;
    handled = true;
    handle = *handlers;
    /* The gate's own handler runs before this one in a child. A program that was attached to has no gate. */
    void (**gate)(void) = (void (**)(void))dlsym(RTLD_DEFAULT, "ffm_gate_forked");
    if (gate != NULL)
        *gate = in_child;
    pthread_atfork(before, in_parent, behind_gate);
}

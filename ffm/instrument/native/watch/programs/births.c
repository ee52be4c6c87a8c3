#include "births.h"

#include <link.h>
#include <linux/sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "forks.h"
#include "guarded.h"
#include "traced.h"
#include "watched.h"

static struct {
    uint64_t start, end;
} library; /* the C library's code */

static int find_library(struct dl_phdr_info *module, size_t bytes, void *result)
{
    (void)bytes, (void)result;
    const uint64_t inside = (uint64_t)(uintptr_t)posix_spawn;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        const uint64_t start = module->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && start <= inside && inside < start + part->p_memsz) {
            library.start = start;
            library.end = start + part->p_memsz;
            return 1;
        }
    }
    return 0;
}

void ffm_births_open(void)
{
    dl_iterate_phdr(find_library, NULL);
}

static bool in_library(uint64_t address)
{
    return library.start <= address && address < library.end;
}

/* Its functions for threads and for other programs call clone. The return address is at the top of the stack there. */
static bool by_library(const ffm_registers *from)
{
    uint64_t caller;
    return in_library(from->instruction) && ffm_guarded_read(&caller, from->stack, sizeof caller) && in_library(caller);
}

static uint64_t flags_of(uint64_t number, const uint64_t *arguments)
{
    uint64_t flags = 0;
    if (number == SYS_clone3)
        ffm_guarded_read(&flags, arguments[0], sizeof flags); /* the first of struct clone_args */
    else if (number == SYS_clone)
        flags = arguments[0];
    return flags;
}

void ffm_births_before(uint64_t number, const uint64_t *arguments, const ffm_registers *from)
{
    if ((number != SYS_clone && number != SYS_clone3 && number != SYS_fork && number != SYS_vfork) ||
        ffm_forks_here() || by_library(from))
        return;
    const uint64_t flags = flags_of(number, arguments);
    if (flags & CLONE_THREAD && !ffm_trace_on())
        return; /* the page watch joins it */
    if (flags & CLONE_VM && !(flags & CLONE_VFORK))
        ffm_watch_lose(); /* it continues alongside this one */
    else
        ffm_watch_give_up();
    if (number != SYS_vfork && !(flags & CLONE_VM))
        ffm_watch_shared();
}

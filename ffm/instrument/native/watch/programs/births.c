#include "births.h"

#include <link.h>
#include <linux/sched.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "foreign.h"
#include "forks.h"
#include "guarded.h"
#include "questions.h"
#include "signals.h"
#include "traced.h"
#include "unwinding.h"
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
bool ffm_births_by_library(const ffm_registers *from)
{
    uint64_t caller;
    return in_library(from->instruction) && ffm_guarded_read(&caller, from->stack, sizeof caller) && in_library(caller);
}

bool ffm_births_by_driver(const ffm_registers *from)
{
    enum { FRAMES = 16 };
    uint64_t frames[FRAMES];
    ffm_registers caller = *from;
    bool truncated;
    if (!ffm_foreign_knows_driver() || !ffm_guarded_read(&caller.instruction, from->stack, sizeof caller.instruction))
        return false;
    caller.stack += sizeof caller.instruction;
    ffm_unwinding_begin();
    const uint32_t depth = ffm_stack_walk(&caller, frames, FRAMES, &truncated);
    ffm_unwinding_end();
    uint32_t inside = 0;
    while (inside < depth && ffm_foreign_starts_threads(frames[inside]))
        inside++;
    return inside < depth && ffm_foreign_is_driver(frames[inside]);
}

static uint64_t flags_of(uint64_t number, const uint64_t *arguments)
{
    uint64_t flags = 0;
    if (number == SYS_vfork)
        flags = CLONE_VM | CLONE_VFORK;
    else if (number == SYS_clone3)
        ffm_guarded_read(&flags, arguments[0], sizeof flags); /* the first of struct clone_args */
    else if (number == SYS_clone)
        flags = arguments[0];
    return flags;
}

/* Whether the kernel, which reads these words or writes where they point, would meet a protected page. */
static bool meets_watched(const uint64_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (ffm_ranges_overlap(words[i], words[i] + sizeof *words))
            return true;
    return false;
}

static bool reaches_watched(uint64_t number, const uint64_t *arguments)
{
    enum { OF_CLONE = 5 };
    uint64_t words[sizeof(struct clone_args) / sizeof(uint64_t)] = {0};
    if (number == SYS_vfork)
        return false;
    if (number == SYS_clone)
        return meets_watched(arguments, OF_CLONE);
    ffm_guarded_read(words, arguments[0], arguments[1] < sizeof words ? arguments[1] : sizeof words);
    return meets_watched(words, sizeof words / sizeof *words) ||
           ffm_ranges_overlap(arguments[0], arguments[0] + arguments[1]);
}

bool ffm_births_share(uint64_t number, const uint64_t *arguments)
{
    const uint64_t flags = flags_of(number, arguments);
    return flags & CLONE_VM && flags & CLONE_VFORK && !(flags & (CLONE_THREAD | CLONE_SETTLS)) &&
           !ffm_signals_in_child() && !reaches_watched(number, arguments);
}

/* The trace follows a child of vfork. A child of clone runs its original code; of these, those of the C library are
 * known. */
static bool is_seen(uint64_t number, const uint64_t *arguments)
{
    return ffm_births_share(number, arguments) && (number == SYS_vfork || !ffm_trace_on());
}

void ffm_births_before(uint64_t number, const uint64_t *arguments, const ffm_registers *from)
{
    if ((number != SYS_clone && number != SYS_clone3 && number != SYS_fork && number != SYS_vfork) ||
        ffm_forks_here() || is_seen(number, arguments) || (ffm_births_by_library(from) && !ffm_signals_in_child()))
        return;
    const uint64_t flags = flags_of(number, arguments);
    if (flags & CLONE_VM && !(flags & CLONE_VFORK))
        ffm_watch_lose(); /* it continues alongside this one */
    else
        ffm_watch_give_up();
    if (!(flags & CLONE_VM))
        ffm_watch_shared();
}

#include "entry_points.h"

#include <stdbool.h>
#include <stddef.h>

#include "callbacks.h"
#include "detached.h"
#include "invocation.h"

static struct {
    void *const *known;
    uint32_t count;
    ffm_entry_found found;
} entry_points;

/* Of the current call. */
static __thread struct {
    const char *name;
    void *const *answer;
    int32_t version;
    uint64_t flags;
} asked __attribute__((tls_model("initial-exec")));

static __thread bool telling __attribute__((tls_model("initial-exec")));

void ffm_entry_points_watch(void *const *known, uint32_t count, ffm_entry_found found)
{
    entry_points.known = known;
    entry_points.count = count;
    entry_points.found = found;
}

static bool is_known(const void *address)
{
    for (uint32_t i = 0; i < entry_points.count; i++)
        if (entry_points.known[i] == address)
            return true;
    return false;
}

void ffm_collector_entry_enter(void *opaque)
{
    const gum_cpu_context *cpu = ((const gum_invocation *)opaque)->cpu_context;
    if (telling)
        return;
    asked.name = (const char *)cpu->rdi;
    asked.answer = (void *const *)cpu->rsi;
    asked.version = (int32_t)cpu->rdx;
    asked.flags = cpu->rcx;
}

void ffm_collector_entry_leave(void *opaque)
{
    const gum_cpu_context *cpu = ((const gum_invocation *)opaque)->cpu_context;
    if (telling || ffm_detached() || (int32_t)cpu->rax != 0 || asked.name == NULL || asked.answer == NULL ||
        *asked.answer == NULL || entry_points.found == NULL || is_known(*asked.answer))
        return;
    telling = true; /* the recipient may query the driver as well */
    entry_points.found(asked.name, *asked.answer, asked.version, asked.flags);
    telling = false;
}

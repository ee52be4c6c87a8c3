#include "counters.h"

#include <x86intrin.h>

#include "clock_reads.h"
#include "code_changes.h"
#include "dispatch.h"
#include "handlers.h"

enum { PLACES = 1 << 10, BREAKPOINT = 0xCC, WITH_PROCESSOR = 3 /* bytes of RDTSCP */ };

/* A read at a breakpoint costs microseconds, and a program may do nothing but read. So a limited number of reads at a
 * place are seen between the ends of two operations; then the breakpoint is gone until the next one ends. Reads
 * meanwhile follow the same operations as those that were seen, but may come from other callers. */
enum { MOST = 64 };

typedef struct {
    uint64_t instruction;
    uint32_t bytes;
    uint8_t first; /* of the instruction */
    bool open;     /* the instruction is in its place; under the lock */
    uint64_t round;
    uint32_t seen; /* in that round */
} place;

static struct {
    uint32_t count;
    bool locked;
    bool any_open;
    uint64_t round; /* ends of operations */
    place places[PLACES];
} counters;

static bool lock(void)
{
    return !__atomic_exchange_n(&counters.locked, true, __ATOMIC_ACQUIRE);
}

static void unlock(void)
{
    __atomic_store_n(&counters.locked, false, __ATOMIC_RELEASE);
}

static place *place_of(uint64_t instruction)
{
    const uint32_t count = __atomic_load_n(&counters.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (counters.places[i].instruction == instruction)
            return &counters.places[i];
    return NULL;
}

/* One byte of code, which other threads may be executing. */
static bool put(uint64_t instruction, uint8_t byte)
{
    if (!ffm_code_open(instruction, true))
        return false;
    __atomic_store_n((volatile uint8_t *)instruction, byte, __ATOMIC_RELEASE);
    ffm_code_close(instruction);
    return true;
}

void ffm_counters_watch(uint64_t instruction, uint32_t bytes)
{
    while (!lock())
        __builtin_ia32_pause();
    place *added = &counters.places[counters.count];
    if (counters.count < PLACES && place_of(instruction) == NULL) {
        *added = (place){.instruction = instruction, .bytes = bytes, .first = *(const uint8_t *)instruction};
        __atomic_store_n(&counters.count, counters.count + 1, __ATOMIC_RELEASE);
        if (!put(instruction, BREAKPOINT))
            __atomic_store_n(&counters.count, counters.count - 1, __ATOMIC_RELEASE);
    }
    unlock();
}

/* In a handler: the code that it interrupted may hold the lock, so it does not wait for it. */
static void count(place *at)
{
    const uint64_t round = __atomic_load_n(&counters.round, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&at->round, round, __ATOMIC_RELAXED) != round)
        __atomic_store_n(&at->seen, 0, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&at->seen, 1, __ATOMIC_RELAXED) < MOST || !lock())
        return;
    if (!at->open && put(at->instruction, at->first)) {
        at->open = true;
        ffm_clock_counter_unseen();
        __atomic_store_n(&counters.any_open, true, __ATOMIC_RELAXED);
    }
    unlock();
}

void ffm_counters_round(void)
{
    __atomic_add_fetch(&counters.round, 1, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&counters.any_open, __ATOMIC_RELAXED))
        return;
    while (!lock())
        __builtin_ia32_pause();
    __atomic_store_n(&counters.any_open, false, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < counters.count; i++)
        if (counters.places[i].open)
            counters.places[i].open = !put(counters.places[i].instruction, BREAKPOINT);
    unlock();
}

bool ffm_counters_read(ucontext_t *context)
{
    greg_t *general = context->uc_mcontext.gregs;
    const uint64_t instruction = (uint64_t)general[REG_RIP] - 1; /* the breakpoint is behind us */
    place *at = place_of(instruction);
    if (at == NULL)
        return false;
    unsigned int processor;
    const uint64_t now = __rdtscp(&processor);
    general[REG_RIP] = (greg_t)instruction;
    const ffm_registers from = ffm_registers_in(context);
    const bool paused = ffm_dispatch_pause();
    ffm_clock_counter_read(&from);
    count(at);
    ffm_dispatch_resume(paused);
    general[REG_RIP] += at->bytes;
    general[REG_RAX] = (greg_t)(uint32_t)now;
    general[REG_RDX] = (greg_t)(now >> 32);
    if (at->bytes == WITH_PROCESSOR)
        general[REG_RCX] = (greg_t)processor;
    return true;
}

void ffm_counters_after_fork(void)
{
    counters.locked = false;
    ffm_code_changes_after_fork();
}

#include "counters.h"

#include <sys/mman.h>
#include <x86intrin.h>

#include "clock_reads.h"
#include "dispatch.h"
#include "handlers.h"

enum { PAGE = 4096, PLACES = 1 << 10, BREAKPOINT = 0xCC, WITH_PROCESSOR = 3 /* bytes of RDTSCP */ };

static struct {
    uint32_t count;
    struct {
        uint64_t instruction;
        uint32_t bytes;
    } places[PLACES];
} counters;

static uint32_t bytes_at(uint64_t instruction)
{
    const uint32_t count = __atomic_load_n(&counters.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (counters.places[i].instruction == instruction)
            return counters.places[i].bytes;
    return 0;
}

void ffm_counters_watch(uint64_t instruction, uint32_t bytes)
{
    void *page = (void *)(instruction & ~(uint64_t)(PAGE - 1));
    if (counters.count == PLACES || bytes_at(instruction) != 0 ||
        mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return;
    counters.places[counters.count].instruction = instruction;
    counters.places[counters.count].bytes = bytes;
    __atomic_store_n(&counters.count, counters.count + 1, __ATOMIC_RELEASE);
    __atomic_store_n((volatile uint8_t *)instruction, BREAKPOINT, __ATOMIC_RELEASE);
    mprotect(page, PAGE, PROT_READ | PROT_EXEC);
}

bool ffm_counters_read(ucontext_t *context)
{
    greg_t *general = context->uc_mcontext.gregs;
    const uint64_t instruction = (uint64_t)general[REG_RIP] - 1; /* the breakpoint is behind us */
    const uint32_t bytes = bytes_at(instruction);
    if (bytes == 0)
        return false;
    unsigned int processor;
    const uint64_t now = __rdtscp(&processor);
    general[REG_RIP] = (greg_t)instruction;
    const ffm_registers from = ffm_registers_in(context);
    const bool paused = ffm_dispatch_pause();
    ffm_clock_counter_read(&from);
    ffm_dispatch_resume(paused);
    general[REG_RIP] += bytes;
    general[REG_RAX] = (greg_t)(uint32_t)now;
    general[REG_RDX] = (greg_t)(now >> 32);
    if (bytes == WITH_PROCESSOR)
        general[REG_RCX] = (greg_t)processor;
    return true;
}

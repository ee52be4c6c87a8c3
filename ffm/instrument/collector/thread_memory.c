#include "thread_memory.h"

enum { PAGE = 4096, AREAS = 4096, NEAR_STACK = 256 << 10, FAR_STACK = 64 << 20 };

/* What the collector keeps for each thread marks where thread-local memory begins that handlers need. */
static __thread char mark __attribute__((tls_model("initial-exec")));

static struct {
    bool locked;
    uint32_t count;
    struct {
        uint64_t control_block, start, end;
    } areas[AREAS];
    bool full;
} known;

static void lock(void)
{
    while (__atomic_test_and_set(&known.locked, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
}

static void unlock(void)
{
    __atomic_clear(&known.locked, __ATOMIC_RELEASE);
}

static uint64_t control_block_here(void)
{
    return (uint64_t)__builtin_thread_pointer();
}

static void add(uint64_t control_block, uint64_t start, uint64_t end)
{
    lock();
    if (known.count == AREAS) {
        known.full = true;
    } else {
        known.areas[known.count].control_block = control_block;
        known.areas[known.count].start = start & ~(uint64_t)(PAGE - 1);
        known.areas[known.count++].end = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    }
    unlock();
}

static bool is_known(uint64_t control_block)
{
    bool found = false;
    lock();
    for (uint32_t i = 0; i < known.count && !found; i++)
        found = known.areas[i].control_block == control_block;
    unlock();
    return found;
}

void ffm_thread_memory_add(uint64_t control_block, uint64_t stack, uint64_t stack_end)
{
    const uint64_t local = control_block_here() - (uint64_t)&mark; /* the same distance in all threads */
    if (control_block != 0)
        add(control_block, control_block - local - PAGE, control_block + PAGE);
    if (stack_end > stack)
        add(control_block, stack, stack_end);
}

void ffm_thread_memory_add_self(void)
{
    const uint64_t control_block = control_block_here(), here = (uint64_t)__builtin_frame_address(0);
    if (is_known(control_block))
        return;
    /* A thread's stack lies right below its control block, but for the first thread's. */
    bool below = here < control_block && control_block - here < FAR_STACK;
    ffm_thread_memory_add(control_block, here - NEAR_STACK, below ? control_block : here + NEAR_STACK);
}

void ffm_thread_memory_add_alternate(uint64_t start, uint64_t end)
{
    add(control_block_here(), start, end);
}

void ffm_thread_memory_remove_self(void)
{
    const uint64_t control_block = control_block_here();
    lock();
    for (uint32_t i = known.count; i > 0; i--)
        if (known.areas[i - 1].control_block == control_block)
            known.areas[i - 1] = known.areas[--known.count];
    unlock();
}

bool ffm_thread_memory_touches(uint64_t start, uint64_t end)
{
    const uint64_t first = start & ~(uint64_t)(PAGE - 1), last = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    lock();
    bool found = known.full; /* where not all is known nothing is safe */
    for (uint32_t i = 0; i < known.count && !found; i++)
        found = known.areas[i].start < last && first < known.areas[i].end;
    unlock();
    return found;
}

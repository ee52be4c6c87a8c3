#include "timed_block.h"

void ffm_timed_block_add(ffm_timed_block *block, uint64_t since_ns, uint64_t within_ns, bool drains)
{
    block->calls++;
    block->ns += since_ns;
    block->within_ns += within_ns;
    const double ns = (double)since_ns;
    if (drains && block->typical > 0 && ns * block->typical <= block->sum_ns)
        return;
    block->typical++;
    block->sum_ns += ns;
    block->squares += ns * ns;
}

double ffm_timed_block_per_call(const ffm_timed_block *block)
{
    return (double)block->ns / block->calls;
}

double ffm_timed_block_within_call(const ffm_timed_block *block)
{
    return (double)block->within_ns / block->calls;
}

/* The sum of the squares of the distances from the mean. */
static double deviations(const ffm_timed_block *block)
{
    return block->typical == 0 ? 0 : block->squares - block->sum_ns * block->sum_ns / block->typical;
}

double ffm_timed_blocks_error_squared(const ffm_timed_block *one, const ffm_timed_block *other)
{
    const double freedom = (double)one->typical + other->typical - 2, sum = deviations(one) + deviations(other);
    if (freedom <= 0 || sum <= 0)
        return 0;
    return sum / freedom * (1.0 / one->calls + 1.0 / other->calls);
}

/* Heap blocks for results that the program keeps: each on pages of its own.
 *
 * A small result shares its page with other blocks. While it is watched, each access to these costs a fault and a step,
 * for as long as the program keeps it. Nothing shows at its allocation that a block is for a result. But blocks of the
 * same size that the same code requests usually serve the same purpose. Blocks of a kind that an earlier run
 * transferred get pages of their own. Others are noted with who requested them: once the watch had to step over
 * accesses beside a result, the next blocks of its kind get pages, too. A kind most of whose blocks then hold no result
 * is left to the program's allocator again. */
#ifndef FFM_RESULT_BLOCKS_H
#define FFM_RESULT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* A block on pages of its own, whose address is a multiple of `alignment`, a power of two. NULL if it comes from the
 * program's allocator. */
void *ffm_result_block(size_t alignment, size_t bytes, const void *caller);

/* The program's allocator has given the caller a block. */
void ffm_result_blocks_note(const void *block, size_t bytes, const void *caller);

/* For the agent, before the program runs: an earlier run transferred blocks of that size that this code requested. */
void ffm_result_blocks_expect(const void *caller, uint64_t bytes);

/* For the watch. Accesses are stepped over beside a result that begins at an address. Safe in signal handlers. */
void ffm_result_blocks_beside(uint64_t address);

/* A result is about to be watched. Safe in signal handlers. */
void ffm_result_blocks_used(uint64_t address);

/* From now on, tell whoever watches of blocks that end, before their memory changes. */
void ffm_result_blocks_tell(void (*freed)(void *block, size_t bytes));

#endif

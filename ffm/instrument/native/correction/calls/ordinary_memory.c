#include "ordinary_memory.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "extras.h"
#include "kernel.h"
#include "pool.h"

enum { PAGE = 4096, LOWEST = 1 << 16 }; /* the system maps nothing below */

static const uint64_t highest = 1ULL << 47; /* addresses of user space, with four levels of page tables */

/* Device memory whose allocation was seen, or just past its end, as iterators are. */
static bool is_followed(uint64_t word)
{
    return ffm_pool_holds(word, 0) || ffm_pool_holds(word - 1, 0);
}

static bool is_of_driver(uint64_t word)
{
    return ffm_place_of(word) != FFM_PLACE_PAGEABLE ||
           (word % PAGE != 0 && ffm_place_of(word - 1) != FFM_PLACE_PAGEABLE);
}

/* Asked about each word of a launch that looks like an address, so by the cheapest call that tells: with MS_ASYNC
 * alone, msync does nothing but fail where nothing is mapped. mincore takes twice as long there, and four times as long
 * where something is mapped. */
static bool is_mapped(uint64_t word)
{
    return ffm_kernel(SYS_msync, word & ~(uint64_t)(PAGE - 1), PAGE, MS_ASYNC, 0) == 0;
}

static bool is_readable(uint64_t word)
{
    char byte;
    const struct iovec here = {&byte, 1}, there = {(void *)word, 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

static bool is_ordinary(uint64_t word)
{
    return word >= LOWEST && word < highest && !is_followed(word) && is_mapped(word) && !is_of_driver(word) &&
           is_readable(word);
}

bool ffm_ordinary_memory_named_in(const void *memory, size_t bytes)
{
    if (!ffm_ordinary_memory_is_used())
        return false;
    bool named = false;
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes && !named; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const char *)memory + at, sizeof word);
        named = is_ordinary(word);
    }
    return named;
}

/* Marks the pages of heap blocks that have pages of their own, which pages.c provides. Nothing else is on them, so they
 * may be closed while their content is on its way. There is one bit for each page of the address space, in memory that
 * is committed on first use. */
#include "marks.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BITS = 12, PAGE = 1 << PAGE_BITS, ADDRESS_BITS = 47 };

/* The header of the C library's block and the rest of its last page take at most one page each. */
enum { COST = 2 * PAGE };

#define EXPORT __attribute__((visibility("default")))

static const uint64_t pages_in_all = (uint64_t)1 << (ADDRESS_BITS - PAGE_BITS);

static uint8_t *made_bits; /* NULL if there is no address space for them: then no page is marked */
static uint64_t blocks, most_blocks;
static uint64_t allowed_blocks = ((uint64_t)256 << 20) / COST; /* until an observer says how many */
static const ffm_marks_observer *observer;

static struct {
    void (*free)(void *);
    void *(*realloc)(void *, size_t);
    size_t (*usable)(void *);
} next;

/* Several threads may look them up at once, and find the same. */
#define NEXT(function) __atomic_load_n(&next.function, __ATOMIC_RELAXED)

/* False while this very thread is looking them up. */
static int find_next(void)
{
    static __thread int looking __attribute__((tls_model("initial-exec")));
    if (__builtin_expect(__atomic_load_n(&next.usable, __ATOMIC_ACQUIRE) != NULL, 1))
        return 1;
    if (looking)
        return 0;
    looking = 1;
    __atomic_store_n(&next.free, (void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "free"), __ATOMIC_RELAXED);
    __atomic_store_n(&next.realloc, (void *(*)(void *, size_t))(uintptr_t)dlsym(RTLD_NEXT, "realloc"),
                     __ATOMIC_RELAXED);
    void *made =
        mmap(NULL, pages_in_all / 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made != MAP_FAILED) {
        madvise(made, pages_in_all / 8, MADV_DONTDUMP);
        uint8_t *none = NULL;
        if (!__atomic_compare_exchange_n(&made_bits, &none, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            munmap(made, pages_in_all / 8); /* another thread was faster */
    }
    __atomic_store_n(&next.usable, (size_t (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "malloc_usable_size"),
                     __ATOMIC_RELEASE);
    looking = 0;
    return NEXT(free) != NULL && NEXT(realloc) != NULL && NEXT(usable) != NULL;
}

static uint8_t *bits(void)
{
    return __atomic_load_n(&made_bits, __ATOMIC_ACQUIRE);
}

static void put(uint64_t page, bool set)
{
    const uint8_t bit = (uint8_t)(1 << page % 8);
    if (set)
        __atomic_fetch_or(&bits()[page / 8], bit, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&bits()[page / 8], (uint8_t)~bit, __ATOMIC_RELAXED);
}

/* The bits of neighbouring blocks may share the bytes at both ends. */
static void put_all(uint64_t page, uint64_t end, bool set)
{
    for (; page < end && page % 8 != 0; page++)
        put(page, set);
    if (page < end)
        memset(&bits()[page / 8], set ? 0xFF : 0, (end - page) / 8);
    for (page = end - (end - page) % 8; page < end; page++)
        put(page, set);
}

static bool is_marked(uint64_t page)
{
    return page < pages_in_all && (__atomic_load_n(&bits()[page / 8], __ATOMIC_RELAXED) >> page % 8 & 1);
}

static bool own(uint64_t first, uint64_t last)
{
    if (bits() == NULL)
        return false;
    bool all = first < last;
    for (uint64_t page = first >> PAGE_BITS; all && page <= (last - 1) >> PAGE_BITS; page++)
        all = is_marked(page);
    return all;
}

/* Other threads may raise it at the same time. False if it was as high already. */
static bool raise_to(uint64_t *highest, uint64_t value)
{
    uint64_t before = __atomic_load_n(highest, __ATOMIC_RELAXED);
    while (before < value)
        if (__atomic_compare_exchange_n(highest, &before, value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return true;
    return false;
}

static void observe(const ffm_marks_observer *new_observer)
{
    __atomic_store_n(&allowed_blocks, new_observer->allowed / COST, __ATOMIC_RELAXED);
    __atomic_store_n(&observer, new_observer, __ATOMIC_SEQ_CST);
    /* Whoever raised the peak before did not tell. */
    raise_to(new_observer->peak, __atomic_load_n(&most_blocks, __ATOMIC_SEQ_CST) * COST);
}

static void count_one(void)
{
    const uint64_t now = __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    if (!raise_to(&most_blocks, now))
        return;
    const ffm_marks_observer *told = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
    if (told != NULL)
        raise_to(told->peak, now * COST);
}

int ffm_marks_room(void)
{
    return __atomic_load_n(&blocks, __ATOMIC_RELAXED) < __atomic_load_n(&allowed_blocks, __ATOMIC_RELAXED);
}

/* pages.c created a block of whole pages. */
void *ffm_marks_block(void *block, size_t bytes)
{
    const uint64_t first = (uint64_t)block >> PAGE_BITS;
    if (block != NULL && find_next() && bits() != NULL && first + (bytes >> PAGE_BITS) <= pages_in_all) {
        put_all(first, first + (bytes >> PAGE_BITS), true);
        count_one();
    }
    return block;
}

/* The block's pages return to the allocator, which may reuse them for anything, even without touching them. */
static void forget(void *block)
{
    const uint64_t start = (uint64_t)block;
    if (start == 0 || start % PAGE != 0 || bits() == NULL || !is_marked(start >> PAGE_BITS))
        return;
    const uint64_t count = NEXT(usable)(block) >> PAGE_BITS;
    const ffm_marks_observer *told = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
    if (told != NULL)
        told->before_free(start, start + count * PAGE);
    put_all(start >> PAGE_BITS, (start >> PAGE_BITS) + count, false);
    __atomic_fetch_sub(&blocks, 1, __ATOMIC_RELAXED);
}

EXPORT void free(void *block)
{
    if (!find_next())
        return;
    forget(block);
    NEXT(free)(block);
}

EXPORT void *realloc(void *block, size_t bytes)
{
    if (!find_next()) {
        errno = ENOMEM;
        return NULL;
    }
    forget(block);
    return NEXT(realloc)(block, bytes);
}

EXPORT const ffm_marks *ffm_marks_of_heap(void)
{
    static const ffm_marks marks = {own, observe};
    return &marks;
}

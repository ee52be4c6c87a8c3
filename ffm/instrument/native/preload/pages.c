/* Gives large heap blocks their own pages.
 *
 * Preloaded if memory is watched by page. An array that shares its first page with another one costs a fault and a step
 * of ten microseconds for each access to the other, and arrays that a program cuts from one block cause this at every
 * border if the block starts in the middle of a page. Blocks still come from the program's own allocator, and are freed
 * by it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "driver_blocks.h"
#include "kernel.h"
#include "result_blocks.h"

/* Smaller blocks would cost more memory than it is worth: at this size at most half as much again. */
enum { PAGE = 4096, LEAST = 4 * PAGE, EARLY = 1 << 16 };

/* To clear more than this, the system is asked for new pages: those that the program never touches take no memory. */
enum { MUCH = 1 << 20 };

#define EXPORT __attribute__((visibility("default")))

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
} next;

/* Memory that the dynamic linker requests while it looks up the allocator; never freed. */
static struct {
    size_t used;
    _Alignas(16) char bytes[EARLY];
} early;

static void *from_early(size_t bytes)
{
    const size_t start = __atomic_fetch_add(&early.used, (bytes + 15) & ~(size_t)15, __ATOMIC_RELAXED);
    return start + bytes <= EARLY ? early.bytes + start : NULL;
}

/* Several threads may look them up at once, and find the same. */
#define NEXT(function) __atomic_load_n(&next.function, __ATOMIC_RELAXED)

/* False while this very thread is looking up the allocator. */
static int find_next(void)
{
    static __thread int looking __attribute__((tls_model("initial-exec")));
    if (__builtin_expect(__atomic_load_n(&next.memalign, __ATOMIC_ACQUIRE) != NULL, 1))
        return 1;
    if (looking)
        return 0;
    looking = 1;
    __atomic_store_n(&next.malloc, (void *(*)(size_t))(uintptr_t)dlsym(RTLD_NEXT, "malloc"), __ATOMIC_RELAXED);
    __atomic_store_n(&next.calloc, (void *(*)(size_t, size_t))(uintptr_t)dlsym(RTLD_NEXT, "calloc"), __ATOMIC_RELAXED);
    __atomic_store_n(&next.memalign, (void *(*)(size_t, size_t))(uintptr_t)dlsym(RTLD_NEXT, "memalign"),
                     __ATOMIC_RELEASE);
    looking = 0;
    return NEXT(malloc) != NULL && NEXT(calloc) != NULL && NEXT(memalign) != NULL;
}

/* If they are linked in (marks.c): notes the block and returns it; whether there may be another such block. */
extern void *ffm_marks_block(void *block, size_t bytes) __attribute__((weak));
extern int ffm_marks_room(void) __attribute__((weak));

/* Likewise (driver_blocks.c, result_blocks.c). */
#pragma weak ffm_driver_block
#pragma weak ffm_result_block
#pragma weak ffm_result_blocks_note

/* A block of the driver, or for a result; NULL if it comes from the program's allocator. */
static void *special(size_t alignment, size_t bytes, const void *caller)
{
    if (ffm_driver_block == NULL)
        return NULL;
    void *block = ffm_driver_block(alignment, bytes, caller);
    return block != NULL ? block : ffm_result_block(alignment, bytes, caller);
}

static void *ordinary(void *block, size_t bytes, const void *caller)
{
    if (ffm_result_blocks_note != NULL)
        ffm_result_blocks_note(block, bytes, caller);
    return block;
}

static int gets_own_pages(size_t bytes)
{
    return bytes >= LEAST && bytes <= (size_t)PTRDIFF_MAX - 2 * PAGE && (ffm_marks_room == NULL || ffm_marks_room());
}

static void *on_own_pages(size_t alignment, size_t bytes)
{
    const size_t whole = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1), aligned = alignment > PAGE ? alignment : PAGE;
    return ffm_marks_block == NULL ? NEXT(memalign)(aligned, whole)
                                   : ffm_marks_block(NEXT(memalign)(aligned, whole), whole);
}

EXPORT void *malloc(size_t bytes)
{
    if (!find_next())
        return from_early(bytes);
    if (gets_own_pages(bytes))
        return on_own_pages(PAGE, bytes);
    void *block = special(1, bytes, __builtin_return_address(0));
    return block != NULL ? block : ordinary(NEXT(malloc)(bytes), bytes, __builtin_return_address(0));
}

/* A block on pages of its own, as calloc returns it. Not by madvise of the C library, which may be watched. */
static void *cleared(void *block, size_t bytes)
{
    if (bytes >= MUCH && ffm_kernel(SYS_madvise, (uint64_t)block, bytes, MADV_DONTNEED, 0) == 0)
        return block;
    return memset(block, 0, bytes);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (!find_next())
        return from_early(count * size);
    if (__builtin_mul_overflow(count, size, &bytes))
        return NEXT(calloc)(count, size);
    void *block = gets_own_pages(bytes) ? on_own_pages(PAGE, bytes) : NULL;
    if (block != NULL)
        return cleared(block, bytes);
    block = special(1, bytes, __builtin_return_address(0));
    return block != NULL ? memset(block, 0, bytes)
                         : ordinary(NEXT(calloc)(count, size), bytes, __builtin_return_address(0));
}

static void *aligned(size_t alignment, size_t bytes, const void *caller)
{
    if (!find_next())
        return NULL;
    if (gets_own_pages(bytes))
        return on_own_pages(alignment, bytes);
    void *block = special(alignment, bytes, caller);
    return block != NULL ? block : ordinary(NEXT(memalign)(alignment, bytes), bytes, caller);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    return aligned(alignment, bytes, __builtin_return_address(0));
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    return aligned(alignment, bytes, __builtin_return_address(0));
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    const int error = errno;
    void *start = aligned(alignment, bytes, __builtin_return_address(0));
    errno = error;
    if (start == NULL)
        return ENOMEM;
    *block = start;
    return 0;
}

#define UNW_LOCAL_ONLY
#include "allocators.h"

#include <errno.h>
#include <libunwind.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "detached.h"
#include "foreign.h"
#include "host_blocks.h"
#include "instruments.h"
#include "python_frames.h"
#include "unwinding.h"

/* Calls made inside another one, or inside our own code, are not the program's. */
static __thread uint32_t inside __attribute__((tls_model("initial-exec")));

enum { OWN_FRAMES = 2 }; /* the replacement's, and that of the function that captures the stack */

#define ALLOCATORS(X)                                                                                                  \
    X(malloc, FFM_ALLOCATOR_MALLOC)                                                                                    \
    X(calloc, FFM_ALLOCATOR_CALLOC)                                                                                    \
    X(realloc, FFM_ALLOCATOR_REALLOC)                                                                                  \
    X(reallocarray, FFM_ALLOCATOR_REALLOCARRAY)                                                                        \
    X(memalign, FFM_ALLOCATOR_MEMALIGN)                                                                                \
    X(aligned_alloc, FFM_ALLOCATOR_ALIGNED_ALLOC)                                                                      \
    X(posix_memalign, FFM_ALLOCATOR_POSIX_MEMALIGN)                                                                    \
    X(mmap, FFM_ALLOCATOR_MMAP)                                                                                        \
    X(free, FFM_ALLOCATOR_FREE)

#define PLACE(name, allocator) PLACE_##name,
enum { ALLOCATORS(PLACE) PLACES };

static void *originals[PLACES];

static void *original_of(uint32_t place)
{
    void *original;
    /* Another thread can arrive between the patch and the bind that follows it. */
    while (__builtin_expect((original = __atomic_load_n(&originals[place], __ATOMIC_ACQUIRE)) == NULL, 0))
        __builtin_ia32_pause();
    return original;
}

#define ORIGINAL(name, result, ...) ((result (*)(__VA_ARGS__))(uintptr_t)original_of(PLACE_##name))

/* Frames of the program around a replacement. The caller must not be inlined into it. */
#define TAKE_STACK(frames, depth)                                                                                      \
    uint64_t taken[OWN_FRAMES + FFM_HOST_BLOCK_FRAMES];                                                                \
    int depth = unw_backtrace((void **)taken, OWN_FRAMES + FFM_HOST_BLOCK_FRAMES) - OWN_FRAMES;                        \
    const uint64_t *frames = taken + OWN_FRAMES;                                                                       \
    if (depth < 0)                                                                                                     \
    depth = 0

static __attribute__((noinline)) void note(void *start, size_t bytes, uint32_t allocator)
{
    int error = errno;
    ffm_unwinding_begin();
    TAKE_STACK(frames, depth);
    ffm_host_blocks_allocated((uint64_t)start, bytes, allocator, frames, (uint32_t)depth);
    ffm_unwinding_end();
    errno = error;
}

/* Transfers do use what the driver maps: pinned and managed memory. */
static __attribute__((noinline)) void note_driver(void *start, size_t bytes)
{
    int error = errno;
    ffm_host_blocks_mapped_by_driver((uint64_t)start, bytes);
    errno = error;
}

static __attribute__((noinline)) void note_release(uint32_t number, uint32_t allocator)
{
    int error = errno;
    ffm_unwinding_begin();
    TAKE_STACK(frames, depth);
    ffm_host_blocks_released(number, allocator, frames, (uint32_t)depth);
    ffm_unwinding_end();
    errno = error;
}

/* Whether a successful call may be remembered. Not calls of the instruments, nor of libunwind, which maps memory while
 * it holds a lock that capturing a stack needs. Not calls in Python either: nearly all memory there comes from the
 * interpreter's own allocator, and frames cannot always be read while it allocates. */
static inline bool seen(size_t bytes, const void *caller)
{
    return __builtin_expect(bytes >= FFM_HOST_BLOCK_LEAST && inside == 1, 0) && !ffm_detached() &&
           !ffm_python_is_readable() && !ffm_unwinding_here() && !ffm_instruments_hold((uint64_t)caller);
}

/* No transfer of the program uses the driver's own heap. What the program allocates in functions that the driver calls,
 * on any thread, is the program's. */
static inline bool kept(size_t bytes, const void *caller)
{
    return seen(bytes, caller) && !ffm_foreign_is_driver((uint64_t)caller);
}

/* Whether what is freed was remembered. If so, forgets it and sets its number. */
static inline bool was_kept(uint64_t start, uint32_t *number)
{
    return inside == 1 && __builtin_expect(ffm_host_blocks_may_hold(start), 0) && !ffm_detached() &&
           !ffm_unwinding_here() && ffm_host_blocks_forget(start, number);
}

#define LARGE(bytes) kept(bytes, __builtin_return_address(0))

static void *wrap_malloc(size_t bytes)
{
    inside++;
    void *start = ORIGINAL(malloc, void *, size_t)(bytes);
    if (LARGE(bytes) && start != NULL)
        note(start, bytes, FFM_ALLOCATOR_MALLOC);
    inside--;
    return start;
}

static void *wrap_calloc(size_t count, size_t size)
{
    inside++;
    void *start = ORIGINAL(calloc, void *, size_t, size_t)(count, size);
    if (LARGE(count * size) && start != NULL)
        note(start, count * size, FFM_ALLOCATOR_CALLOC);
    inside--;
    return start;
}

static void *wrap_memalign(size_t alignment, size_t bytes)
{
    inside++;
    void *start = ORIGINAL(memalign, void *, size_t, size_t)(alignment, bytes);
    if (LARGE(bytes) && start != NULL)
        note(start, bytes, FFM_ALLOCATOR_MEMALIGN);
    inside--;
    return start;
}

static void *wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    inside++;
    void *start = ORIGINAL(aligned_alloc, void *, size_t, size_t)(alignment, bytes);
    if (LARGE(bytes) && start != NULL)
        note(start, bytes, FFM_ALLOCATOR_ALIGNED_ALLOC);
    inside--;
    return start;
}

static int wrap_posix_memalign(void **start, size_t alignment, size_t bytes)
{
    inside++;
    int result = ORIGINAL(posix_memalign, int, void **, size_t, size_t)(start, alignment, bytes);
    if (LARGE(bytes) && result == 0)
        note(*start, bytes, FFM_ALLOCATOR_POSIX_MEMALIGN);
    inside--;
    return result;
}

static void *wrap_mmap(void *wanted, size_t bytes, int protection, int flags, int file, off_t offset)
{
    inside++;
    void *start =
        ORIGINAL(mmap, void *, void *, size_t, int, int, int, off_t)(wanted, bytes, protection, flags, file, offset);
    const void *caller = __builtin_return_address(0);
    if (seen(bytes, caller) && start != MAP_FAILED && !(flags & MAP_STACK)) {
        if (ffm_foreign_is_driver((uint64_t)caller))
            note_driver(start, bytes);
        else
            note(start, bytes, FFM_ALLOCATOR_MMAP);
    }
    inside--;
    return start;
}

/* Memory is forgotten before it is freed, because another thread can receive its address at once. */
static void *wrap_realloc(void *old, size_t bytes)
{
    uint32_t number;
    inside++;
    if (old != NULL && was_kept((uint64_t)old, &number))
        note_release(number, FFM_ALLOCATOR_REALLOC);
    void *start = ORIGINAL(realloc, void *, void *, size_t)(old, bytes);
    if (LARGE(bytes) && start != NULL)
        note(start, bytes, FFM_ALLOCATOR_REALLOC);
    inside--;
    return start;
}

static void *wrap_reallocarray(void *old, size_t count, size_t size)
{
    uint32_t number;
    inside++;
    if (old != NULL && was_kept((uint64_t)old, &number))
        note_release(number, FFM_ALLOCATOR_REALLOCARRAY);
    void *start = ORIGINAL(reallocarray, void *, void *, size_t, size_t)(old, count, size);
    if (LARGE(count * size) && start != NULL)
        note(start, count * size, FFM_ALLOCATOR_REALLOCARRAY);
    inside--;
    return start;
}

static void wrap_free(void *start)
{
    uint32_t number;
    inside++;
    if (start != NULL && was_kept((uint64_t)start, &number))
        note_release(number, FFM_ALLOCATOR_FREE);
    ORIGINAL(free, void, void *)(start);
    inside--;
}

#define ROW(name, allocator) {#name, (void *)(uintptr_t)wrap_##name},
static const struct {
    const char *name;
    void *wrapper;
} rows[PLACES] = {ALLOCATORS(ROW)};

const char *ffm_allocator_name(uint32_t place)
{
    return place < PLACES ? rows[place].name : NULL;
}

void *ffm_allocator_wrapper(uint32_t place)
{
    return place < PLACES ? rows[place].wrapper : NULL;
}

void ffm_allocator_bind(uint32_t place, void *original)
{
    if (place < PLACES)
        __atomic_store_n(&originals[place], original, __ATOMIC_RELEASE);
}

bool ffm_allocator_is_bound(uint32_t place)
{
    return place < PLACES && __atomic_load_n(&originals[place], __ATOMIC_ACQUIRE) != NULL;
}

/* Keeps the driver's heap blocks, and those of the dynamic linker, which hold the driver's thread-local variables, off
 * the pages of the program's blocks.
 *
 * Preloaded if memory is watched by page. System calls of the driver are not intercepted, and the kernel refuses those
 * that use a protected page: a thread of the driver that goes to sleep on a lock beside a small result would end the
 * program. So small blocks that such code requests come from slabs that hold nothing else; large ones have pages of
 * their own. A slab has blocks of one size. */
#include "driver_blocks.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

enum { STRETCHES = 16, SLAB = 1 << 16, SLABS = 1 << 16 };

/* Sizes: multiples of STEP up to LINEAR, then four to each power of two. A power of two is a multiple of all alignments
 * up to itself, as are the addresses of such blocks. */
enum { STEP = 16, LINEAR = 64, STEPS = 4, DOUBLINGS = 8, SIZES = STEPS * (1 + DOUBLINGS), MOST = LINEAR << DOUBLINGS };

/* After these come sizes of one page and more, for results: these share no slab with the driver's blocks. */
enum { PAGE = 4096, IN_PAGES = MOST / PAGE };

typedef struct block {
    struct block *next; /* while it is free */
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    uint64_t start; /* of address space for all slabs; 0 before the first */
    uint32_t used;
    uint8_t size_of[SLABS]; /* of each slab's blocks, by number */
    struct {
        block *free;
        char *fresh, *end; /* never used so far, of the last slab */
    } sizes[SIZES + IN_PAGES];
} slabs;

static struct {
    uint32_t count;
    struct {
        uint64_t start, end;
    } stretches[STRETCHES];
} code;

EXPORT void ffm_driver_blocks_code(uint64_t start, uint64_t end)
{
    if (code.count == STRETCHES)
        return;
    code.stretches[code.count].start = start;
    code.stretches[code.count].end = end;
    __atomic_store_n(&code.count, code.count + 1, __ATOMIC_RELEASE);
}

static bool is_foreign(const void *caller)
{
    for (uint32_t i = __atomic_load_n(&code.count, __ATOMIC_ACQUIRE); i > 0; i--)
        if (code.stretches[i - 1].start <= (uint64_t)caller && (uint64_t)caller < code.stretches[i - 1].end)
            return true;
    return false;
}

static size_t bytes_of(uint32_t size)
{
    if (size >= SIZES)
        return (size_t)(size - SIZES + 1) * PAGE;
    const uint32_t doubling = size / STEPS, step = size % STEPS + 1;
    return doubling == 0 ? (size_t)step * STEP : ((size_t)LINEAR + (size_t)step * STEP) << (doubling - 1);
}

/* The smallest that holds so many; at least 1, at most MOST. */
static uint32_t size_for(size_t bytes)
{
    const size_t last = bytes - 1;
    if (bytes <= LINEAR)
        return (uint32_t)(last / STEP);
    const uint32_t power = 63 - (uint32_t)__builtin_clzll(last), doubling = power - (uint32_t)__builtin_ctz(LINEAR) + 1;
    return doubling * STEPS + (uint32_t)(last >> (power - 2)) % STEPS;
}

/* Locked. False without memory. */
static bool find_room(void)
{
    if (slabs.start != 0)
        return true;
    void *room = mmap(NULL, (size_t)SLAB * (SLABS + 1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return false;
    __atomic_store_n(&slabs.start, ((uint64_t)room + SLAB - 1) & ~(uint64_t)(SLAB - 1), __ATOMIC_RELEASE);
    return true;
}

/* Locked. */
static bool add_slab(uint32_t size)
{
    if (!find_room() || slabs.used == SLABS)
        return false;
    char *slab = (char *)slabs.start + (size_t)slabs.used * SLAB; // NOLINT(performance-no-int-to-ptr)
    if (mprotect(slab, SLAB, PROT_READ | PROT_WRITE) != 0)
        return false;
    slabs.size_of[slabs.used++] = (uint8_t)size;
    slabs.sizes[size].fresh = slab;
    slabs.sizes[size].end = slab + SLAB / bytes_of(size) * bytes_of(size);
    return true;
}

/* Locked. NULL without memory. */
static void *take_locked(uint32_t size)
{
    block *taken = slabs.sizes[size].free;
    if (taken != NULL) {
        slabs.sizes[size].free = taken->next;
        return taken;
    }
    if (slabs.sizes[size].fresh == slabs.sizes[size].end && !add_slab(size))
        return NULL;
    char *fresh = slabs.sizes[size].fresh;
    slabs.sizes[size].fresh += bytes_of(size);
    return fresh;
}

static void *take(uint32_t size)
{
    pthread_mutex_lock(&lock);
    void *taken = take_locked(size);
    pthread_mutex_unlock(&lock);
    return taken;
}

static void (*pages_end)(void *, size_t);

void ffm_slab_when_pages_end(void (*ends)(void *block, size_t bytes))
{
    pages_end = ends;
}

void *ffm_slab_pages(size_t pages)
{
    return take(SIZES - 1 + (uint32_t)pages);
}

void *ffm_driver_block(size_t alignment, size_t bytes, const void *caller)
{
    if (bytes > MOST || alignment > MOST || __builtin_expect(!is_foreign(caller), 1))
        return NULL;
    if (bytes == 0)
        bytes = 1;
    if (alignment > STEP) { /* the next power of two */
        const size_t least = bytes > alignment ? bytes : alignment;
        bytes = (size_t)1 << (64 - __builtin_clzll(least - 1));
    }
    return take(size_for(bytes));
}

static bool is_ours(const void *start)
{
    const uint64_t room = __atomic_load_n(&slabs.start, __ATOMIC_ACQUIRE);
    return __builtin_expect(room != 0 && (uint64_t)start - room < (uint64_t)SLAB * SLABS, 0);
}

EXPORT bool ffm_slab_holds(const void *start)
{
    return is_ours(start);
}

static uint32_t size_here(const void *start)
{
    return slabs.size_of[((uint64_t)start - slabs.start) / SLAB];
}

static void give_back(block *freed)
{
    const uint32_t size = size_here(freed);
    if (size >= SIZES && pages_end != NULL)
        pages_end(freed, bytes_of(size));
    pthread_mutex_lock(&lock);
    freed->next = slabs.sizes[size].free;
    slabs.sizes[size].free = freed;
    pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static int note_linker(struct dl_phdr_info *module, size_t bytes, void *result)
{
    (void)bytes, (void)result;
    if (module->dlpi_addr != getauxval(AT_BASE))
        return 0;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        const uint64_t start = module->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0)
            ffm_driver_blocks_code(start, start + part->p_memsz);
    }
    return 1;
}

__attribute__((constructor)) static void open_blocks(void)
{
    dl_iterate_phdr(note_linker, NULL);
    pthread_atfork(before_fork, after_fork, after_fork);
}

EXPORT void ffm_slab_free(void *start)
{
    give_back(start);
}

/* ---- what the program's allocator need not see ------------------------------------------------------------------- */

/* Looked up on first use. While a thread looks up the allocator, the dynamic linker frees nothing that has to be freed.
 * It calls back into this file, though the declaration of dlsym says that it does not (leaf): only a volatile mark is
 * not optimized away. */
#define NEXT(type, name)                                                                                               \
    static type next;                                                                                                  \
    static __thread volatile bool looking __attribute__((tls_model("initial-exec")));                                  \
    type found = __atomic_load_n(&next, __ATOMIC_ACQUIRE);                                                             \
    if (__builtin_expect(found == NULL && !looking, 0)) {                                                              \
        looking = true;                                                                                                \
        found = (type)(uintptr_t)dlsym(RTLD_NEXT, name);                                                               \
        looking = false;                                                                                               \
        __atomic_store_n(&next, found, __ATOMIC_RELEASE);                                                              \
    }

typedef void (*freeing)(void *);
typedef void *(*resizing)(void *, size_t);
typedef size_t (*measuring)(void *);

EXPORT void free(void *start)
{
    if (is_ours(start)) {
        give_back(start);
        return;
    }
    NEXT(freeing, "free")
    if (found != NULL)
        found(start);
}

EXPORT void *realloc(void *start, size_t bytes)
{
    void *first = start == NULL ? ffm_driver_block(STEP, bytes, __builtin_return_address(0)) : NULL;
    if (first != NULL)
        return first;
    if (!is_ours(start)) {
        NEXT(resizing, "realloc")
        return found == NULL ? NULL : found(start, bytes);
    }
    if (bytes == 0) {
        give_back(start);
        return NULL;
    }
    const size_t room = bytes_of(size_here(start));
    if (bytes <= room && bytes > room / 2)
        return start;
    void *moved = ffm_driver_block(STEP, bytes, __builtin_return_address(0));
    if (moved == NULL)
        moved = malloc(bytes);
    if (moved != NULL) {
        memcpy(moved, start, bytes < room ? bytes : room);
        give_back(start);
    }
    return moved;
}

EXPORT size_t malloc_usable_size(void *start)
{
    if (is_ours(start))
        return bytes_of(size_here(start));
    NEXT(measuring, "malloc_usable_size")
    return found == NULL ? 0 : found(start);
}

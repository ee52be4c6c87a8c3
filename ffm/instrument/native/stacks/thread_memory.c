#include "thread_memory.h"

#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "kernel.h"
#include "mappings.h"
#include "signal_mask.h"
#include "unwinding.h"

/* glibc's `struct pthread`, which starts at the thread pointer and contains what the kernel knows about a thread, is
 * smaller.
 */
enum { PAGE = 4096, CONTROL_BLOCK = 4096, CAPACITY = 1 << 12, STATIC_VARIABLES = 1 << 16 };

/* Assumed size of a stack without a limit, or of a mapping that cannot be found. */
enum { LARGE_STACK = 1 << 30, SOME_STACK = 8 << 20 };

static struct {
    bool locked, overflown;
    uint64_t changes;          /* odd while the regions change */
    uint64_t static_variables; /* bytes of thread-local storage below the thread pointer */
    uint32_t count;
    struct {
        uint64_t thread_pointer, start, end;
    } regions[CAPACITY];
} noted;

/* Locked. */
static void change(void)
{
    __atomic_add_fetch(&noted.changes, 1, __ATOMIC_SEQ_CST);
}

/* Locked; others read meanwhile. */
static void put(uint32_t place, uint64_t thread_pointer, uint64_t start, uint64_t end)
{
    noted.regions[place].thread_pointer = thread_pointer;
    __atomic_store_n(&noted.regions[place].start, start, __ATOMIC_RELAXED);
    __atomic_store_n(&noted.regions[place].end, end, __ATOMIC_RELAXED);
}

void ffm_thread_memory_note(uint64_t thread_pointer, uint64_t start, uint64_t end)
{
    start &= ~(uint64_t)(PAGE - 1);
    end = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    const uint64_t before = ffm_signals_lock(&noted.locked);
    bool known = false;
    for (uint32_t i = 0; i < noted.count && !known; i++)
        known = noted.regions[i].thread_pointer == thread_pointer && noted.regions[i].start == start &&
                noted.regions[i].end == end;
    if (!known && noted.count == CAPACITY) {
        __atomic_store_n(&noted.overflown, true, __ATOMIC_RELAXED);
    } else if (!known) {
        change();
        put(noted.count, thread_pointer, start, end);
        __atomic_store_n(&noted.count, noted.count + 1, __ATOMIC_RELAXED);
        change();
    }
    ffm_signals_unlock(&noted.locked, before);
}

void ffm_thread_memory_gone(uint64_t thread_pointer)
{
    const uint64_t before = ffm_signals_lock(&noted.locked);
    change();
    for (uint32_t i = noted.count; i > 0; i--) {
        if (noted.regions[i - 1].thread_pointer != thread_pointer)
            continue;
        const uint32_t last = noted.count - 1;
        put(i - 1, noted.regions[last].thread_pointer, noted.regions[last].start, noted.regions[last].end);
        __atomic_store_n(&noted.count, last, __ATOMIC_RELAXED);
    }
    change();
    ffm_signals_unlock(&noted.locked, before);
}

/* The stack that the calling thread was last seen on. */
static __thread struct {
    uint64_t start, end;
} running __attribute__((tls_model("initial-exec")));

static bool overlaps(uint64_t start, uint64_t end)
{
    bool found = __atomic_load_n(&noted.overflown, __ATOMIC_RELAXED);
    const uint32_t count = __atomic_load_n(&noted.count, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count && !found; i++)
        found = start < __atomic_load_n(&noted.regions[i].end, __ATOMIC_RELAXED) &&
                __atomic_load_n(&noted.regions[i].start, __ATOMIC_RELAXED) < end;
    return found;
}

/* Threads rarely begin or end, and each transfer asks: the lock is only taken while the regions change. */
bool ffm_thread_memory_holds(uint64_t start, uint64_t end)
{
    start &= ~(uint64_t)(PAGE - 1);
    const uint64_t changes = __atomic_load_n(&noted.changes, __ATOMIC_ACQUIRE);
    bool found = overlaps(start, end);
    /* Read by adding 0, so that earlier loads stay before it. */
    if (changes % 2 == 0 && __atomic_fetch_add(&noted.changes, 0, __ATOMIC_ACQ_REL) == changes)
        return found;
    const uint64_t before = ffm_signals_lock(&noted.locked);
    found = overlaps(start, end);
    ffm_signals_unlock(&noted.locked, before);
    return found;
}

/* The calling thread's variables of one module in static thread-local storage, whose offset is the same in all threads.
 */
static int measure_variables(struct dl_phdr_info *info, size_t size, void *opaque)
{
    const uint64_t self = *(const uint64_t *)opaque, start = (uint64_t)info->dlpi_tls_data;
    if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data || start == 0 ||
        start > self || self - start > STATIC_VARIABLES)
        return 0;
    if (self - start > noted.static_variables)
        noted.static_variables = self - start;
    return 0;
}

void ffm_thread_memory_measure(void)
{
    static __thread char own __attribute__((tls_model("initial-exec"))); /* the collector's are always there */
    uint64_t self = (uint64_t)pthread_self();
    noted.static_variables = self - (uint64_t)&own + PAGE;
    dl_iterate_phdr(measure_variables, &self);
}

/* Where handlers run that request an alternate stack. */
static void note_alternate(uint64_t self)
{
    stack_t stack = {.ss_flags = SS_DISABLE};
    ffm_kernel(SYS_sigaltstack, 0, (uint64_t)&stack, 0, 0);
    if (!(stack.ss_flags & SS_DISABLE))
        ffm_thread_memory_note(self, (uint64_t)stack.ss_sp, (uint64_t)stack.ss_sp + stack.ss_size);
}

static uint64_t lowest_of_stack(uint64_t start, uint64_t end)
{
    struct rlimit limit = {0};
    if (ffm_kernel(SYS_getpid, 0, 0, 0, 0) != ffm_kernel(SYS_gettid, 0, 0, 0, 0))
        return start;
    /* The stack of the first thread grows into unmapped memory. */
    ffm_kernel(SYS_prlimit64, 0, RLIMIT_STACK, 0, (uint64_t)&limit);
    const uint64_t most = limit.rlim_cur < LARGE_STACK ? limit.rlim_cur : LARGE_STACK;
    return start < end - most ? start : end - most;
}

void ffm_thread_memory_in_handler(uint64_t interrupted)
{
    const uint64_t self = (uint64_t)__builtin_thread_pointer();
    uint64_t start, end;
    if (ffm_mappings_around(interrupted, &start, &end))
        ffm_thread_memory_note(self, lowest_of_stack(start, end), end);
    else
        ffm_thread_memory_note(self, interrupted - SOME_STACK, interrupted + SOME_STACK);
    ffm_thread_memory_note(self, self - noted.static_variables, self + CONTROL_BLOCK);
    note_alternate(self);
}

/* The calling thread's variables of one module, as far as they are next to its control block, like those of the
 * collector that handlers and the kernel use. Variables of libraries loaded later are ordinary heap memory. */
static int note_variables(struct dl_phdr_info *info, size_t size, void *opaque)
{
    const uint64_t self = *(const uint64_t *)opaque, start = (uint64_t)info->dlpi_tls_data;
    if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data || start == 0 ||
        start > self || self - start > STATIC_VARIABLES)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            ffm_thread_memory_note(self, start, start + info->dlpi_phdr[i].p_memsz);
    return 0;
}

void ffm_thread_memory_here(void)
{
    uint64_t self = (uint64_t)pthread_self();
    ffm_thread_memory_note(self, self, self + CONTROL_BLOCK);
    note_alternate(self);
    ffm_unwinding_begin();
    dl_iterate_phdr(note_variables, &self);
    ffm_unwinding_end();
    pthread_attr_t attributes;
    void *bottom;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &bottom, &bytes) == 0) {
        running.start = (uint64_t)bottom;
        running.end = (uint64_t)bottom + bytes;
        ffm_thread_memory_note(self, running.start, running.end);
    }
    pthread_attr_destroy(&attributes);
}

void ffm_thread_memory_runs(void)
{
    const uint64_t here = (uint64_t)__builtin_frame_address(0);
    uint64_t start, end;
    if (running.start <= here && here < running.end)
        return;
    if (running.end == 0)
        ffm_thread_memory_here();
    if ((running.start <= here && here < running.end) || !ffm_mappings_around(here, &start, &end))
        return;
    running.start = start;
    running.end = end;
    ffm_thread_memory_note((uint64_t)pthread_self(), start, end);
}

void ffm_thread_memory_after_fork(void)
{
    __atomic_clear(&noted.locked, __ATOMIC_RELEASE); /* a thread that no longer exists may have held it */
    noted.count = 0;
    noted.changes = 0;
    noted.overflown = false;
    ffm_thread_memory_here();
}

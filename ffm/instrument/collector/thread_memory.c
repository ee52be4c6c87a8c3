#include "thread_memory.h"

#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>

/* glibc's `struct pthread`, which begins at the thread pointer and holds what the kernel knows of a thread, is smaller.
 */
enum { PAGE = 4096, CONTROL_BLOCK = 4096, CAPACITY = 1 << 12, STATIC_VARIABLES = 1 << 16 };

static struct {
    bool locked, overflown;
    uint32_t count;
    struct {
        uint64_t thread_pointer, start, end;
    } regions[CAPACITY];
} noted;

static void lock(void)
{
    while (__atomic_test_and_set(&noted.locked, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void unlock(void)
{
    __atomic_clear(&noted.locked, __ATOMIC_RELEASE);
}

void ffm_thread_memory_note(uint64_t thread_pointer, uint64_t start, uint64_t end)
{
    start &= ~(uint64_t)(PAGE - 1);
    end = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    lock();
    if (noted.count == CAPACITY) {
        noted.overflown = true;
    } else {
        noted.regions[noted.count].thread_pointer = thread_pointer;
        noted.regions[noted.count].start = start;
        noted.regions[noted.count++].end = end;
    }
    unlock();
}

void ffm_thread_memory_gone(uint64_t thread_pointer)
{
    lock();
    for (uint32_t i = noted.count; i > 0; i--)
        if (noted.regions[i - 1].thread_pointer == thread_pointer)
            noted.regions[i - 1] = noted.regions[--noted.count];
    unlock();
}

bool ffm_thread_memory_holds(uint64_t start, uint64_t end)
{
    start &= ~(uint64_t)(PAGE - 1);
    lock();
    bool found = noted.overflown;
    for (uint32_t i = 0; i < noted.count && !found; i++)
        found = start < noted.regions[i].end && noted.regions[i].start < end;
    unlock();
    return found;
}

/* The calling thread's variables of one module, as far as they lie with its control block, where the collector's do
 * that handlers and the kernel use. Those of libraries that came later are ordinary memory of the heap. */
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
    dl_iterate_phdr(note_variables, &self);
    pthread_attr_t attributes;
    void *bottom;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &bottom, &bytes) == 0)
        ffm_thread_memory_note(self, (uint64_t)bottom, (uint64_t)bottom + bytes);
    pthread_attr_destroy(&attributes);
}

void ffm_thread_memory_after_fork(void)
{
    unlock();
    noted.count = 0;
    noted.overflown = false;
    ffm_thread_memory_here();
}

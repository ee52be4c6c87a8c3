#include "kernel_arguments.h"

#include <pthread.h>
#include <string.h>

#include "delivery.h"
#include "extras.h"
#include "host_memory.h"
#include "ordinary_memory.h"

enum { KERNELS = 4096, PARAMETERS = 64, LARGEST_BUFFER = 1 << 15 };

/* cuda.h: CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE. */
enum { EXTRA_POINTER = 1, EXTRA_SIZE = 2 };

/* Sizes of a kernel's parameters. A function's handle selects the entry; two kernels in one entry evict each other. */
typedef struct {
    uint64_t function;
    uint64_t generation;
    uint32_t count;
    bool known;
    uint16_t bytes[PARAMETERS];
} layout;

static struct {
    pthread_mutex_t lock;
    uint64_t generation; /* incremented when kernels are unloaded */
    layout table[KERNELS];
} kernels = {.lock = PTHREAD_MUTEX_INITIALIZER, .generation = 1};

static bool read_layout(uint64_t function, bool kernel, layout *out)
{
    size_t offset, bytes;
    int result = 0;
    out->function = function;
    out->generation = kernels.generation;
    for (out->count = 0; out->count < PARAMETERS; out->count++) {
        result = ffm_parameter(function, kernel, out->count, &offset, &bytes);
        if (result != 0 || bytes > UINT16_MAX)
            break;
        out->bytes[out->count] = (uint16_t)bytes;
    }
    /* The end of the list is an invalid value (1); any other error, or a longer list, leaves it unknown. */
    out->known = result == 1;
    return out->known;
}

static layout layout_of(uint64_t function)
{
    pthread_mutex_lock(&kernels.lock);
    layout *entry = &kernels.table[(function >> 4) % KERNELS];
    bool current = entry->function == function && entry->generation == kernels.generation;
    if (!current && !read_layout(function, false, entry))
        read_layout(function, true, entry); /* a CUkernel instead of a CUfunction */
    layout found = *entry;
    pthread_mutex_unlock(&kernels.lock);
    return found;
}

void ffm_kernels_forget(void)
{
    pthread_mutex_lock(&kernels.lock);
    kernels.generation++;
    pthread_mutex_unlock(&kernels.lock);
}

void ffm_kernels_after_fork(void)
{
    pthread_mutex_init(&kernels.lock, NULL); /* another thread of the parent may have held it */
}

static bool names_host(const void *memory, size_t bytes)
{
    return (ffm_host_memory_any() && ffm_host_memory_named_in(memory, bytes)) ||
           ffm_ordinary_memory_named_in(memory, bytes);
}

static bool buffer_mentions_host(void *const *extra)
{
    const char *buffer = NULL;
    size_t bytes = 0;
    for (int i = 0; extra[i] != NULL; i += 2) {
        if (extra[i] == (void *)EXTRA_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == (void *)EXTRA_SIZE)
            bytes = *(const size_t *)extra[i + 1];
        else
            return true;
    }
    return buffer == NULL || bytes > LARGEST_BUFFER || names_host(buffer, bytes);
}

bool ffm_kernel_reaches_host(const ffm_program_call *launch)
{
    if (!ffm_host_memory_any() && !ffm_ordinary_memory_is_used())
        return false;
    uint64_t function = ffm_argument(launch, launch->function->handle);
    void *const *parameters = (void *const *)ffm_argument(launch, launch->function->parameters);
    void *const *extra = (void *const *)ffm_argument(launch, launch->function->extra);
    if (parameters == NULL)
        return extra != NULL && buffer_mentions_host(extra);
    if (!ffm_parameters_known()) {
        if (ffm_host_memory_any())
            FFM_COUNT(launches_unread);
        return false;
    }
    layout known = layout_of(function);
    for (uint32_t i = 0; known.known && i < known.count; i++)
        if (names_host(parameters[i], known.bytes[i]))
            return true;
    return !known.known;
}

void ffm_kernel_deliver(const ffm_program_call *launch)
{
    void *const *parameters = (void *const *)ffm_argument(launch, launch->function->parameters);
    layout known = {0};
    if (parameters != NULL && ffm_parameters_known())
        known = layout_of(ffm_argument(launch, launch->function->handle));
    if (!known.known) {
        ffm_downloads_deliver_all(&ffm_counters->deliveries_called, false);
        return;
    }
    ffm_downloads_deliver((uint64_t)parameters, (uint64_t)(parameters + known.count), &ffm_counters->deliveries_called);
    for (uint32_t i = 0; i < known.count; i++) {
        uint64_t start = (uint64_t)parameters[i];
        ffm_downloads_deliver(start, start + known.bytes[i], &ffm_counters->deliveries_called);
        for (size_t at = 0; at + sizeof(uint64_t) <= known.bytes[i]; at += sizeof(uint64_t)) {
            uint64_t word;
            memcpy(&word, (const char *)parameters[i] + at, sizeof word);
            ffm_downloads_before_call(&word, 1);
        }
    }
}

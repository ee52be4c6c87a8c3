#include "contexts.h"

#include <cuda.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "sink.h"

typedef int (*current_function)(uint64_t *);
typedef int (*device_function)(int32_t *);
typedef int (*uuid_function)(uint8_t *, int32_t);
typedef int (*attribute_function)(int32_t *, int, int32_t);

static current_function get_current;
static device_function get_device;
static uuid_function get_uuid;
static attribute_function get_attribute;

/* The calling thread's context at its last call. */
static __thread uint64_t last __attribute__((tls_model("initial-exec")));
static __thread uint32_t last_number __attribute__((tls_model("initial-exec")));

static struct {
    pthread_mutex_t lock;
    uint64_t handles[FFM_CONTEXTS];
    bool described[FFM_CONTEXTS];
    uint32_t count;
    ffm_stream records;
} contexts = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ffm_contexts_ask(void *current, void *device, void *uuid, void *attribute)
{
    get_current = (current_function)(uintptr_t)current;
    get_device = (device_function)(uintptr_t)device;
    get_uuid = (uuid_function)(uintptr_t)uuid;
    get_attribute = (attribute_function)(uintptr_t)attribute;
}

bool ffm_devices_several(void)
{
    enum { UNKNOWN, NO, YES };
    static int known = UNKNOWN;
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == UNKNOWN) {
        uint8_t uuid[16];
        answer = get_uuid == NULL || get_uuid(uuid, 1) == 0 ? YES : NO;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == YES;
}

bool ffm_context_made(const ffm_function *function)
{
    return function->effect == FFM_EFFECT_ENTER_CONTEXT && function->result >= 0;
}

bool ffm_context_ends(const ffm_function *function)
{
    return function->effect == FFM_EFFECT_END_CONTEXT || function->effect == FFM_EFFECT_RELEASE_CONTEXT;
}

/* Locked. */
static uint32_t number_of(uint64_t handle)
{
    uint32_t number = 0;
    while (number < contexts.count && contexts.handles[number] != handle)
        number++;
    if (number == contexts.count && number < FFM_CONTEXTS - 1)
        contexts.handles[contexts.count++] = handle;
    return number;
}

/* An attribute of a device, or 0 if the driver does not say. */
static uint32_t attribute_of(int32_t device, CUdevice_attribute attribute)
{
    int32_t value = 0;
    return get_attribute != NULL && get_attribute(&value, (int)attribute, device) == 0 && value > 0 ? (uint32_t)value
                                                                                                    : 0;
}

/* Locked. Record on which device the calling thread's context is. */
static void describe(uint32_t number)
{
    ffm_context context = {.number = number};
    if (number == FFM_CONTEXTS - 1 || contexts.described[number] || get_device == NULL ||
        get_device(&context.device) != 0)
        return;
    contexts.described[number] = true;
    if (get_uuid != NULL)
        get_uuid(context.uuid, context.device);
    context.multiprocessors = attribute_of(context.device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    context.threads = attribute_of(context.device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    ffm_context *out = ffm_sink_reserve(&contexts.records, FFM_CHUNK_CONTEXTS, 0, sizeof context);
    if (out == NULL)
        return;
    *out = context;
    ffm_sink_commit(&contexts.records, sizeof context);
}

static uint32_t number_of_current(uint64_t handle)
{
    if (handle == last)
        return last_number;
    pthread_mutex_lock(&contexts.lock);
    const uint32_t number = number_of(handle);
    describe(number);
    pthread_mutex_unlock(&contexts.lock);
    last = handle;
    last_number = number;
    return number;
}

static uint32_t number_of_named(uint64_t handle)
{
    pthread_mutex_lock(&contexts.lock);
    const uint32_t number = number_of(handle);
    pthread_mutex_unlock(&contexts.lock);
    return number;
}

uint32_t ffm_context_number(void)
{
    uint64_t handle = 0;
    /* Before the first context there is no work. */
    if (get_current == NULL || get_current(&handle) != 0 || handle == 0)
        return 0;
    return number_of_current(handle);
}

uint32_t ffm_context_of(const ffm_function *function, const ffm_operation *operation)
{
    const bool named = function->kind == FFM_KIND_SYNCHRONIZATION && operation->handle != 0 && get_current != NULL &&
                       function->awaits == FFM_AWAITS_CONTEXT;
    return named ? number_of_named(operation->handle) : ffm_context_number();
}

void ffm_contexts_after_fork(void)
{
    pthread_mutex_init(&contexts.lock, NULL);
    ffm_sink_release(&contexts.records);
    contexts.records = (ffm_stream){0};
    memset(contexts.described, 0, sizeof contexts.described); /* the child's recording describes none yet */
    last = 0;
}

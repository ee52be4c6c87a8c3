#include "contexts.h"

#include <pthread.h>
#include <stddef.h>

typedef int (*current_function)(uint64_t *);

static current_function get_current;

static struct {
    pthread_mutex_t lock;
    uint64_t handles[FFM_CONTEXTS];
    uint32_t count;
} contexts = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ffm_contexts_ask(void *function)
{
    get_current = (current_function)(uintptr_t)function;
}

bool ffm_context_ends(const ffm_function *function)
{
    return function->effect == FFM_EFFECT_END_CONTEXT;
}

static uint32_t number_of(uint64_t handle)
{
    static __thread uint64_t last __attribute__((tls_model("initial-exec")));
    static __thread uint32_t last_number __attribute__((tls_model("initial-exec")));
    if (handle == last)
        return last_number;
    pthread_mutex_lock(&contexts.lock);
    uint32_t number = 0;
    while (number < contexts.count && contexts.handles[number] != handle)
        number++;
    if (number == contexts.count && number < FFM_CONTEXTS - 1)
        contexts.handles[contexts.count++] = handle;
    pthread_mutex_unlock(&contexts.lock);
    last = handle;
    last_number = number;
    return number;
}

uint32_t ffm_context_number(void)
{
    uint64_t handle = 0;
    /* Before the first context there is no work. */
    if (get_current == NULL || get_current(&handle) != 0 || handle == 0)
        return 0;
    return number_of(handle);
}

uint32_t ffm_context_of(const ffm_function *function, const ffm_operation *operation)
{
    const bool named = function->kind == FFM_KIND_SYNCHRONIZATION && operation->handle != 0 && get_current != NULL &&
                       function->awaits == FFM_AWAITS_CONTEXT;
    return named ? number_of(operation->handle) : ffm_context_number();
}

void ffm_contexts_after_fork(void)
{
    pthread_mutex_init(&contexts.lock, NULL);
}

#include "state.h"

#include <stddef.h>

#include <cuda.h>

#include "counters.h"
#include "driver.h"

pthread_mutex_t ffm_lock = PTHREAD_MUTEX_INITIALIZER;

static bool stopped;
static uint32_t captures;
static uint64_t context;

static void (*on_stop)(void);

void ffm_state_on_stop(void (*handler)(void))
{
    on_stop = handler;
}

void ffm_stop(uint32_t reason)
{
    if (__atomic_exchange_n(&stopped, true, __ATOMIC_ACQ_REL))
        return;
    ffm_counters->stopped = reason;
    if (on_stop != NULL)
        on_stop();
}

bool ffm_stopped(void)
{
    return __atomic_load_n(&stopped, __ATOMIC_ACQUIRE);
}

void ffm_capture(bool begins)
{
    pthread_mutex_lock(&ffm_lock);
    uint32_t now = begins ? captures + 1 : captures > 0 ? captures - 1 : 0;
    __atomic_store_n(&captures, now, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&ffm_lock);
}

bool ffm_state_capturing(void)
{
    return __atomic_load_n(&captures, __ATOMIC_ACQUIRE) > 0;
}

void ffm_context_seen(uint64_t seen)
{
    if (seen == 0)
        return;
    uint64_t expected = 0;
    if (!__atomic_compare_exchange_n(&context, &expected, seen, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        expected != seen)
        ffm_stop(FFM_STOP_CONTEXTS);
}

/* Errors of work after which the context must be destroyed (cuda.h). */
static bool is_of_work(int error)
{
    switch (error) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return false;
    }
}

static bool lasts(int error)
{
    return error == CUDA_ERROR_DEINITIALIZED || error == CUDA_ERROR_CONTEXT_IS_DESTROYED || is_of_work(error);
}

void ffm_state_answered(int result)
{
    if (__builtin_expect(result != CUDA_SUCCESS, 0) && is_of_work(result))
        ffm_stop(FFM_STOP_ERROR);
}

bool ffm_context_known(void)
{
    return __atomic_load_n(&context, __ATOMIC_ACQUIRE) != 0;
}

bool ffm_context_is(uint64_t asked)
{
    return asked != 0 && __atomic_load_n(&context, __ATOMIC_ACQUIRE) == asked;
}

bool ffm_context_enter(void)
{
    const uint64_t known = __atomic_load_n(&context, __ATOMIC_ACQUIRE);
    return known != 0 && ffm_driver.push_context(known) == FFM_CUDA_SUCCESS;
}

void ffm_context_leave(void)
{
    uint64_t popped;
    ffm_driver.pop_context(&popped);
}

/* A thread may have no current context. While a stream is captured, the driver forbids this query. */
bool ffm_context_failed(void)
{
    if (ffm_state_capturing() || !ffm_context_enter())
        return false;
    int state = ffm_driver.stream_query(FFM_LEGACY_STREAM);
    ffm_context_leave();
    return lasts(state);
}

void ffm_state_forget_context(void)
{
    __atomic_store_n(&context, 0, __ATOMIC_RELEASE);
}

void ffm_state_after_fork(void)
{
    pthread_mutex_init(&ffm_lock, NULL); /* another thread of the parent may have held it */
    stopped = false;
    captures = 0;
}

#include "clock_payments.h"

#include <errno.h>
#include <stddef.h>

#include "bypasses.h"
#include "clocks.h"
#include "counters.h"
#include "dispatch.h"
#include "instruments.h"
#include "order.h"
#include "stacks.h"
#include "state.h"
#include "unwinding.h"

static bool owed;

static struct {
    uint64_t start, end;
} driver;

void ffm_clock_payments_driver(uint64_t start, uint64_t end)
{
    driver.start = start;
    driver.end = end;
}

static bool in_driver(uint64_t address)
{
    return driver.start <= address && address < driver.end;
}

/* The driver may hold its own locks, also where a function of another file reads the clock for it. */
static bool reads_for_driver(void)
{
    bool truncated; /* of the outer frames, which are the program's */
    uint64_t frames[FFM_MAX_FRAMES];
    const uint32_t depth = ffm_stack_frames(ffm_stack_here(0, &truncated), frames, FFM_MAX_FRAMES);
    bool found = false;
    for (uint32_t i = 0; i < depth && !found; i++)
        found = in_driver(frames[i]);
    return found;
}

static void on_read(const void *caller, const ffm_registers *from)
{
    (void)from;
    static __thread bool settling __attribute__((tls_model("initial-exec")));
    /* Threads that never call the driver are its own, or ours, or know of its work only through others. */
    if (!__atomic_load_n(&owed, __ATOMIC_RELAXED) || settling || !ffm_dispatch_between_calls() ||
        ffm_unwinding_here() || in_driver((uint64_t)caller) || ffm_instruments_hold((uint64_t)caller))
        return;
    const int error = errno;
    settling = true;
    if (!ffm_state_capturing() && !reads_for_driver())
        ffm_clock_payments_settle();
    settling = false;
    errno = error;
}

void ffm_clock_payments_open(void)
{
    ffm_clocks_tell(on_read);
}

bool ffm_clock_payments_possible(void)
{
    return ffm_clocks_are_followed() && driver.start != 0 && !ffm_bypasses_loaded();
}

void ffm_clock_payments_owe(void)
{
    __atomic_store_n(&owed, true, __ATOMIC_RELAXED);
}

void ffm_clock_payments_settle(void)
{
    if (!__atomic_exchange_n(&owed, false, __ATOMIC_RELAXED) || !ffm_order_owes())
        return;
    FFM_COUNT(waits_clocks);
    ffm_order_pay();
}

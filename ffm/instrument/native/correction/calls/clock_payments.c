#include "clock_payments.h"

#include <errno.h>
#include <stddef.h>

#include "bypasses.h"
#include "clocks.h"
#include "counters.h"
#include "delivery.h"
#include "dispatch.h"
#include "instruments.h"
#include "order.h"
#include "stacks.h"
#include "state.h"
#include "unwinding.h"

/* How many waits were removed that a read of a clock must make up for, and up to which one that is done. The second
 * number grows only once they are made up for, because another thread may read a clock meanwhile. */
static struct {
    uint64_t owed, paid;
} waits;

static struct {
    uint64_t start, end;
} driver;

static bool owes(void)
{
    return __atomic_load_n(&waits.owed, __ATOMIC_ACQUIRE) != __atomic_load_n(&waits.paid, __ATOMIC_ACQUIRE);
}

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
    if (!owes() || settling || !ffm_dispatch_between_calls() || ffm_unwinding_here() || in_driver((uint64_t)caller) ||
        ffm_instruments_hold((uint64_t)caller))
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
    __atomic_add_fetch(&waits.owed, 1, __ATOMIC_RELEASE);
}

void ffm_clock_payments_settle(void)
{
    const uint64_t upto = __atomic_load_n(&waits.owed, __ATOMIC_ACQUIRE);
    uint64_t paid = __atomic_load_n(&waits.paid, __ATOMIC_ACQUIRE);
    if (paid == upto)
        return;
    if (ffm_order_owes()) {
        FFM_COUNT(waits_clocks);
        ffm_order_pay();
    }
    ffm_downloads_deliver_all(&ffm_counters->deliveries_clocks, false);
    while (paid < upto &&
           !__atomic_compare_exchange_n(&waits.paid, &paid, upto, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
}

#include "masked_calls.h"

#include <string.h>
#include <sys/syscall.h>

#include "guarded.h"
#include "kernel.h"
#include "signal_mask.h"

#ifndef SYS_epoll_pwait2 /* Linux 5.11 */
#define SYS_epoll_pwait2 441
#endif

/* What pselect6 and io_pgetevents take in place of a mask. */
typedef struct {
    uint64_t mask, bytes;
} described;

/* The last argument of io_uring_enter where it is extended (struct io_uring_getevents_arg of linux/io_uring.h). */
typedef struct {
    uint64_t mask, bytes, time;
} extended;

enum { FLAGS = 3, RING_MASK = 4, RING_BYTES = 5, EXTENDED = 1 << 3 /* IORING_ENTER_EXT_ARG */ };

/* The mask at an address; false if there is none, or it cannot be read: the kernel answers that. */
static bool lenient_at(uint64_t address, uint64_t *mask)
{
    if (address == 0 || !ffm_guarded_read(mask, address, sizeof *mask))
        return false;
    *mask &= ~FFM_SIGNALS_OURS;
    return true;
}

/* The call with another argument at a place. */
static int64_t with(uint64_t number, const uint64_t *arguments, uint32_t place, const void *argument)
{
    uint64_t changed[6];
    memcpy(changed, arguments, sizeof changed);
    changed[place] = (uint64_t)argument;
    return ffm_kernel_call(number, changed);
}

static int64_t with_mask(uint64_t number, const uint64_t *arguments, uint32_t place)
{
    uint64_t mask;
    return lenient_at(arguments[place], &mask) ? with(number, arguments, place, &mask)
                                               : ffm_kernel_call(number, arguments);
}

static int64_t with_described(uint64_t number, const uint64_t *arguments, uint32_t place)
{
    described given;
    uint64_t mask;
    if (arguments[place] == 0 || !ffm_guarded_read(&given, arguments[place], sizeof given) ||
        !lenient_at(given.mask, &mask))
        return ffm_kernel_call(number, arguments);
    given.mask = (uint64_t)&mask;
    return with(number, arguments, place, &given);
}

static int64_t with_ring(uint64_t number, const uint64_t *arguments)
{
    extended given;
    uint64_t mask;
    if (!(arguments[FLAGS] & EXTENDED))
        return with_mask(number, arguments, RING_MASK);
    if (arguments[RING_BYTES] != sizeof given || arguments[RING_MASK] == 0 ||
        !ffm_guarded_read(&given, arguments[RING_MASK], sizeof given) || !lenient_at(given.mask, &mask))
        return ffm_kernel_call(number, arguments);
    given.mask = (uint64_t)&mask;
    return with(number, arguments, RING_MASK, &given);
}

bool ffm_masked_call_is(uint64_t number)
{
    switch (number) {
    case SYS_rt_sigsuspend:
    case SYS_ppoll:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_pselect6:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter:
        return true;
    default:
        return false;
    }
}

int64_t ffm_masked_call(uint64_t number, const uint64_t *arguments)
{
    switch (number) {
    case SYS_rt_sigsuspend:
        return with_mask(number, arguments, 0);
    case SYS_ppoll:
        return with_mask(number, arguments, 3);
    case SYS_pselect6:
    case SYS_io_pgetevents:
        return with_described(number, arguments, 5);
    case SYS_io_uring_enter:
        return with_ring(number, arguments);
    default:
        return with_mask(number, arguments, 4);
    }
}

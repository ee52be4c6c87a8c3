#include "calls_in_progress.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "blocked_calls.h"
#include "kernel.h"

enum { PARTS = 20, ROOM = 1 << 16 };

typedef struct {
    uint64_t start, end, call; /* the address of the latter, on the stack of the thread */
    bool writing, again, admitted;
} part;

/* What the calls of one thread use. */
typedef struct place {
    struct place *next;
    bool taken, in_quick;
    uint32_t count;
    part quick; /* while in_quick */
    part parts[PARTS];
} place;

static place *all; /* only grows */

static __thread struct {
    place *used;   /* NULL before the thread's first call, and without memory */
    uint64_t call; /* that is being prepared; 0 if none is */
    bool again;    /* it may be made again */
    bool admitted;
} own __attribute__((tls_model("initial-exec")));

static place *free_one(void)
{
    for (place *one = __atomic_load_n(&all, __ATOMIC_ACQUIRE); one != NULL; one = one->next)
        if (!__atomic_test_and_set(&one->taken, __ATOMIC_ACQUIRE))
            return one;
    return NULL;
}

/* Add the places of many threads. They are found one after the other from the last. */
static void add_room(void)
{
    const uint64_t arguments[6] = {0, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
    const int64_t room = ffm_kernel_call(SYS_mmap, arguments);
    if (room < 0)
        return;
    place *made = (place *)room; // NOLINT(performance-no-int-to-ptr)
    const size_t count = ROOM / sizeof *made;
    for (size_t i = 0; i + 1 < count; i++)
        made[i].next = &made[i + 1];
    place *before = __atomic_load_n(&all, __ATOMIC_RELAXED);
    do
        made[count - 1].next = before;
    while (!__atomic_compare_exchange_n(&all, &before, made, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void find_place(void)
{
    own.used = free_one();
    if (own.used != NULL)
        return;
    add_room();
    own.used = free_one();
}

static void leave(place *left)
{
    __atomic_store_n(&left->count, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&left->in_quick, false, __ATOMIC_RELEASE);
    __atomic_clear(&left->taken, __ATOMIC_RELEASE);
}

void ffm_call_in_progress_begins(ffm_call_in_progress *call, uint64_t number, bool admitted)
{
    call->first = 0;
    if (number == SYS_exit) { /* the thread's last */
        if (own.used != NULL)
            leave(own.used);
        own.used = NULL;
        return;
    }
    if (own.used == NULL)
        find_place();
    if (own.used == NULL)
        return;
    place *here = own.used;
    uint32_t count = here->count;
    while (count > 0 && here->parts[count - 1].call < (uint64_t)call) /* left by a jump out of a handler */
        count--;
    __atomic_store_n(&here->count, count, __ATOMIC_RELEASE);
    call->first = count;
    own.call = (uint64_t)call;
    own.again = ffm_blocked_call_only_waits(number);
    own.admitted = admitted;
}

void ffm_call_in_progress_uses(uint64_t start, uint64_t end, bool writing)
{
    place *here = own.used;
    if (here == NULL || own.call == 0)
        return;
    const uint32_t count = here->count;
    if (count == PARTS) { /* the last one grows */
        if (here->parts[PARTS - 1].call != own.call)
            return;
        if (start < here->parts[PARTS - 1].start)
            here->parts[PARTS - 1].start = start;
        if (end > here->parts[PARTS - 1].end)
            here->parts[PARTS - 1].end = end;
        here->parts[PARTS - 1].writing |= writing;
    } else {
        here->parts[count].start = start;
        here->parts[count].end = end;
        here->parts[count].call = own.call;
        here->parts[count].writing = writing;
        here->parts[count].again = own.again;
        here->parts[count].admitted = own.admitted;
        __atomic_store_n(&here->count, count + 1, __ATOMIC_RELEASE);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool ffm_call_in_progress_again(const ffm_call_in_progress *call, bool (*is_closed)(uint64_t start, uint64_t end))
{
    for (uint32_t i = call->first; own.used != NULL && i < own.used->count; i++)
        if (own.used->parts[i].again && is_closed(own.used->parts[i].start, own.used->parts[i].end))
            return true;
    return false;
}

void ffm_call_in_progress_over(const ffm_call_in_progress *call)
{
    own.call = 0;
    if (own.used != NULL && own.used->count > call->first)
        __atomic_store_n(&own.used->count, call->first, __ATOMIC_RELEASE);
}

bool ffm_quick_call_in_progress_begins(uint64_t number, uint64_t start, uint64_t end, bool writing, bool admitted)
{
    place *here = own.used;
    if (here == NULL)
        return false;
    here->quick = (part){.start = start,
                         .end = end,
                         .writing = writing,
                         .again = ffm_blocked_call_only_waits(number),
                         .admitted = admitted};
    __atomic_store_n(&here->in_quick, true, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return true;
}

void ffm_quick_call_in_progress_over(void)
{
    if (own.used != NULL)
        __atomic_store_n(&own.used->in_quick, false, __ATOMIC_RELEASE);
}

/* A refused call can perhaps be made again; one that is admitted uses the memory unseen. */
static bool needs(const part *used, const ffm_closing *closing)
{
    const bool admitted = closing->by_key && used->admitted;
    const uint64_t start = admitted ? closing->start : closing->first_page;
    const uint64_t end = admitted ? closing->end : closing->last_page;
    return used->start < end && start < used->end && (admitted || !used->again) &&
           (used->writing || !closing->writing_only);
}

static bool uses(const place *of_thread, const ffm_closing *closing)
{
    for (uint32_t i = __atomic_load_n(&of_thread->count, __ATOMIC_ACQUIRE); i > 0; i--)
        if (needs(&of_thread->parts[i - 1], closing))
            return true;
    return __atomic_load_n(&of_thread->in_quick, __ATOMIC_ACQUIRE) && needs(&of_thread->quick, closing);
}

bool ffm_calls_in_progress_use(const ffm_closing *closing)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (const place *one = __atomic_load_n(&all, __ATOMIC_ACQUIRE); one != NULL; one = one->next)
        if (one != own.used && uses(one, closing))
            return true;
    return false;
}

void ffm_calls_in_progress_child_over(void)
{
    own.call = 0;
    if (own.used != NULL)
        __atomic_store_n(&own.used->count, 0, __ATOMIC_RELEASE);
}

void ffm_calls_in_progress_after_fork(void)
{
    for (place *one = all; one != NULL; one = one->next)
        if (one != own.used)
            leave(one);
}

#include "peek.h"

#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "aside.h"
#include "delivery.h"
#include "keys.h"
#include "new_pages.h"
#include "protection.h"
#include "questions.h"
#include "ranges.h"
#include "signal_mask.h"
#include "threads.h"
#include "traced.h"

/* Where keys close the pages, this thread is admitted to them. Without keys, the pages of a large box are lifted, that
 * is opened meanwhile, if no other thread runs code of the program. Otherwise, the kernel reads pages through this
 * file, whatever their protection (proc_pid_mem(5)). That is several times as slow, and does not work for some drivers'
 * page-locked memory, which is set aside instead. */
static struct {
    pthread_mutex_t lock;
    char *copy;
    uint64_t bytes;
    ffm_box lifted;
} peek = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* From so many bytes on, lifting is worth two calls of the system and an interrupt for each piece. */
enum { LIFTED_BYTES = 128 << 10, LIFTED_PIECES = 8 };

static __thread enum {
    DIRECT,
    DELIVERED, /* a download's buffer has the bytes */
    COPIED,
    ADMITTED,
    LIFTED,
    OPENED
} way __attribute__((tls_model("initial-exec")));

static bool room_for(uint64_t bytes)
{
    if (peek.bytes >= bytes)
        return true;
    if (peek.copy != NULL)
        munmap(peek.copy, peek.bytes);
    peek.copy = ffm_new_pages(bytes);
    peek.bytes = peek.copy == NULL ? 0 : bytes;
    return peek.copy != NULL;
}

static bool copy_all(uint64_t start, uint64_t bytes)
{
    int memory =
        open("/proc/self/mem",
             O_RDONLY | O_CLOEXEC); /* opened each time, because a program may close descriptors it does not know */
    if (memory < 0)
        return false;
    uint64_t done = 0;
    ssize_t some = room_for(bytes) ? 1 : 0;
    while (done < bytes && some > 0) {
        some = pread(memory, peek.copy + done, bytes - done, (off_t)(start + done));
        done += some > 0 ? (uint64_t)some : 0;
    }
    close(memory);
    return done == bytes;
}

/* The pages of the box that a range hides. */
static bool hidden_by(const ffm_range *range, const ffm_box *box, ffm_page *hidden)
{
    if (range->writes_only || !ffm_range_shares_page(range, box->address, ffm_box_end(box)))
        return false;
    const uint64_t page = range->page, first = ffm_range_first_page(range), last = ffm_range_last_page(range);
    const uint64_t start = box->address & ~(page - 1), end = (ffm_box_end(box) + page - 1) & ~(page - 1);
    hidden->start = start > first ? start : first;
    hidden->bytes = (end < last ? end : last) - hidden->start;
    return true;
}

/* Open what is hidden, or close it again. Returns whether it did, in as many pieces as are worth it. */
static bool lift_all(const ffm_box *box, bool lifting)
{
    const ffm_nearby nearby = ffm_ranges_nearby(box->address, ffm_box_end(box));
    uint32_t pieces = 0;
    ffm_page hidden;
    for (uint32_t i = 0; i < nearby.count; i++) {
        if (!hidden_by(ffm_ranges_at(ffm_nearby_place(&nearby, i)), box, &hidden))
            continue;
        if (!lifting)
            ffm_ranges_close_page(&hidden);
        else if (pieces++ == LIFTED_PIECES || !ffm_ranges_open_page(&hidden))
            return false;
    }
    return true;
}

static void end_lift(const ffm_box *box)
{
    ffm_ranges_lock();
    lift_all(box, false);
    ffm_ranges_unlock();
    ffm_signals_release();
}

/* No handler of the program may use what is open. */
static bool lift(const ffm_box *box)
{
    if (ffm_box_end(box) - box->address < LIFTED_BYTES || ffm_threads_several() || ffm_threads_functions_lent() ||
        ffm_trace_on())
        return false;
    ffm_signals_hold();
    ffm_ranges_lock();
    const bool all = lift_all(box, true);
    ffm_ranges_unlock();
    peek.lifted = *box;
    if (!all)
        end_lift(box);
    return all;
}

/* A thread of the driver that steps over a page closes it when it is done. */
bool ffm_peek_lift_again(uint64_t address)
{
    if (way != LIFTED || !ffm_box_touches(&peek.lifted, address, address + 1) || !ffm_ranges_hide(address, address + 1))
        return false;
    ffm_ranges_lock_in_handler();
    const bool all = lift_all(&peek.lifted, true);
    ffm_ranges_unlock_in_handler();
    return all;
}

void ffm_peek_begin(const ffm_box *box)
{
    way = DIRECT;
    if (!ffm_ranges_hide(box->address, ffm_box_end(box)))
        return;
    if (ffm_delivery_piece(box->address, ffm_box_end(box) - box->address) != NULL) {
        way = DELIVERED;
        return;
    }
    if (ffm_protection_is_by_keys()) {
        if (ffm_keys_admitted()) /* for a copy of the driver, which comes later */
            return;
        if (ffm_keys_admit()) {
            way = ADMITTED;
            return;
        }
    }
    pthread_mutex_lock(&peek.lock);
    way = lift(box) ? LIFTED : COPIED;
}

const void *ffm_peek_piece(uint64_t start, uint64_t bytes)
{
    const void *in_place = (const void *)start; // NOLINT(performance-no-int-to-ptr)
    if (way == DELIVERED)
        return ffm_delivery_piece(start, bytes);
    if (way == DIRECT || way == ADMITTED || way == LIFTED || !ffm_ranges_hide(start, start + bytes))
        return in_place;
    if (way == COPIED) {
        if (copy_all(start, bytes))
            return peek.copy;
        pthread_mutex_unlock(&peek.lock);
        way = ffm_keys_admit() ? ADMITTED : OPENED;
    }
    ffm_aside(start, start + bytes);
    return in_place;
}

ffm_box ffm_peek(const ffm_box *box)
{
    ffm_box readable = *box;
    ffm_peek_begin(box);
    readable.address = (uint64_t)ffm_peek_piece(box->address, ffm_box_end(box) - box->address);
    return readable;
}

void ffm_peek_over(void)
{
    if (way == LIFTED)
        end_lift(&peek.lifted);
    if (way == COPIED || way == LIFTED)
        pthread_mutex_unlock(&peek.lock);
    else if (way == ADMITTED)
        ffm_keys_expel();
    else if (way == OPENED)
        ffm_aside_over();
    way = DIRECT;
}

void ffm_peek_after_fork(void)
{
    pthread_mutex_init(&peek.lock, NULL);
}

/* How watched memory is read while one thread runs code of the program, and while others may. */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arming.h"
#include "clock.h"
#include "collector.h"
#include "extents.h"
#include "modes.h"
#include "peek.h"
#include "ranges.h"
#include "thread.h"
#include "threads.h"
#include "waiters.h"
#include "waits.h"

enum { BYTES = 256 << 10, SMALL = 64 << 10, MIDDLE = BYTES / 2, PAGE = FFM_RANGES_PAGE, CONTEXT = 1, STREAM = 1 };

static char *memory;

static ffm_box box_of(uint64_t bytes)
{
    return (ffm_box){(uint64_t)memory, bytes, bytes, 1, bytes, 1, true};
}

static void close_memory(void)
{
    const ffm_range range = {.box = box_of(BYTES),
                             .thread = ffm_thread_self()->number,
                             .context = CONTEXT,
                             .stream = STREAM,
                             .issued = ffm_now(),
                             .waits = ffm_waiters_waits(),
                             .download = true};
    ffm_ranges_lock();
    assert(ffm_ranges_add(&range));
    ffm_ranges_unlock();
    const ffm_cover cover = {.context = CONTEXT, .stream = STREAM, .before = ffm_now() + 1};
    ffm_arming_wait_ended(&cover, ffm_thread_self(), 0);
}

/* The kernel reads only what is open. */
static bool is_open(uint64_t offset)
{
    int ends[2];
    assert(pipe(ends) == 0);
    const bool open = write(ends[1], memory + offset, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return open;
}

static bool is_held(int number)
{
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    return sigismember(&blocked, number) == 1;
}

/* Whether a box is read where it is; it is closed before and after. */
static bool in_place(uint64_t bytes)
{
    const ffm_box box = box_of(bytes);
    assert(!is_open(0) && !is_held(SIGUSR1));
    const ffm_box readable = ffm_peek(&box);
    const bool same = readable.address == box.address;
    assert(is_open(0) == same && is_held(SIGUSR1) == same && !is_held(SIGSEGV));
    assert(((const char *)readable.address)[bytes - 1] == 'x');
    ffm_peek_over();
    assert(!is_open(0) && !is_open(BYTES - 1) && !is_held(SIGUSR1));
    return same;
}

static void another_closes_a_page(void)
{
    const ffm_box box = box_of(BYTES);
    const uint64_t address = (uint64_t)memory + MIDDLE;
    assert(!ffm_peek_lift_again(address));
    ffm_peek(&box);
    ffm_ranges_lock();
    ffm_ranges_close_page(&(ffm_page){address, PAGE});
    ffm_ranges_unlock();
    assert(!is_open(MIDDLE));
    assert(ffm_peek_lift_again(address) && is_open(MIDDLE));
    assert(!ffm_peek_lift_again((uint64_t)memory + BYTES));
    ffm_peek_over();
    assert(!is_open(MIDDLE) && !ffm_peek_lift_again(address));
}

int main(int count, char **arguments)
{
    assert(count == 2);
    assert(ffm_collector_open(arguments[1], FFM_MODE_CONTENTS, NULL) == 0);
    ffm_extents_open(1000);
    ffm_threads_join();
    memory = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED);
    memset(memory, 'x', BYTES);
    close_memory();
    assert(in_place(BYTES));
    assert(!in_place(SMALL));
    another_closes_a_page();
    ffm_threads_begin();
    assert(!in_place(BYTES));
    ffm_threads_end();
    assert(in_place(BYTES));
    ffm_threads_lend_functions();
    assert(!in_place(BYTES));
    _exit(0);
}

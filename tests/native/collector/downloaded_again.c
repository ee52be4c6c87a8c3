#include "downloaded_again.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "blocks.h"
#include "protection.h"
#include "questions.h"
#include "ranges.h"
#include "stand_in_driver.h"

enum { BYTES = FFM_RANGES_PAGE / 2, OFTEN = 100, FAILED = 1 };

typedef int (*download_later)(void *, uint64_t, size_t, uint64_t);
typedef int (*synchronize_stream)(uint64_t);

static char on_device[FFM_RANGES_PAGE];

static bool on_cpu, fails, kept; /* how the driver downloads next; whether its pages were closed meanwhile */

static bool is_open(const char *destination, size_t bytes)
{
    return !ffm_ranges_overlap((uint64_t)destination, (uint64_t)destination + bytes);
}

/* The device writes by other means than the CPU's pages: later, and here not at all. */
static int driver_download_later(void *destination, uint64_t source, size_t bytes, uint64_t stream)
{
    assert(stream == 0);
    kept = !is_open(destination, bytes);
    if (on_cpu)
        memcpy(destination, (const void *)source, bytes);
    return fails ? FAILED : 0;
}

static int driver_synchronize_stream(uint64_t stream)
{
    return (int)stream;
}

static char read_after(synchronize_stream sync, const volatile char *place)
{
    assert(sync(0) == 0 && !is_open((const char *)place, 1));
    return *place;
}

/* While nobody touches it, its pages stay as they are, whether it is waited for or not. A touch opens them; a driver
 * that writes them during the call does so, too, and they are closed after it. A call that fails leaves them open. */
void ffm_test_downloaded_again(void)
{
    const ffm_function pinned = {.kind = FFM_KIND_ALLOCATION, .memory = FFM_MEMORY_PINNED};
    download_later down = (download_later)hook("cuMemcpyDtoHAsync_v2", (void *)driver_download_later);
    synchronize_stream sync = (synchronize_stream)hook("cuStreamSynchronize", (void *)driver_synchronize_stream);
    char *place = mmap(NULL, FFM_RANGES_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(place != MAP_FAILED);
    ffm_blocks_note(&pinned, &(ffm_operation){.destination = (uint64_t)place, .bytes = FFM_RANGES_PAGE});
    const uint64_t source = (uint64_t)on_device;

    assert(down(place, source, BYTES, 0) == 0 && !kept && !is_open(place, BYTES));
    assert(down(place, source, BYTES, 0) == 0); /* from then on, its old bytes are looked at less often */
    uint64_t changes = ffm_protection_changes();
    uint32_t often = 0;
    for (int i = 0; i < OFTEN; i++) {
        assert(down(place, source, BYTES, 0) == 0 && !is_open(place, BYTES));
        often += kept;
        assert(i % 2 == 0 || sync(0) == 0);
    }
    assert(often == OFTEN && ffm_protection_changes() == changes);
    assert(read_after(sync, place) == 0);

    /* A touch before any wait. */
    assert(down(place, source, BYTES, 0) == 0 && !is_open(place, BYTES));
    assert(down(place, source, BYTES, 0) == 0 && kept && place[0] == 0 && is_open(place, BYTES));

    memset(on_device, 3, sizeof on_device);
    on_cpu = true;
    assert(down(place, source, BYTES, 0) == 0 && !kept);
    for (int i = 0; i < 2; i++)
        assert(down(place, source, BYTES, 0) == 0 && kept && !is_open(place, BYTES));
    on_cpu = false;
    assert(read_after(sync, place) == 3);

    assert(down(place, source, BYTES, 0) == 0 && !is_open(place, BYTES));
    fails = true;
    assert(down(place, source, BYTES, 0) == FAILED && kept && is_open(place, BYTES));
    fails = false;

    /* Another part of it: the first one ends. */
    assert(down(place, source, BYTES, 0) == 0 && !is_open(place, BYTES));
    assert(down(place, source, BYTES / 2, 0) == 0 && !kept && !is_open(place, BYTES / 2));
    assert(read_after(sync, place) == 3);
    ffm_blocks_remove((uint64_t)place);
    munmap(place, FFM_RANGES_PAGE);
}

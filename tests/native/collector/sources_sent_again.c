#include "sources_sent_again.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <sys/mman.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "blocks.h"
#include "protection.h"
#include "questions.h"
#include "ranges.h"
#include "stand_in_driver.h"

enum { BYTES = FFM_RANGES_PAGE / 2, OFTEN = 100, UNKNOWN = 3 /* first times that a stack is captured */ };

typedef int (*upload_later)(uint64_t, const void *, size_t, uint64_t);
typedef int (*synchronize_stream)(uint64_t);

static char on_device[BYTES];

static int driver_upload_later(uint64_t destination, const void *source, size_t bytes, uint64_t stream)
{
    assert(stream == 0);
    return driver_upload(destination, source, bytes);
}

static int driver_synchronize_stream(uint64_t stream)
{
    return (int)stream;
}

static uint32_t steps;

/* Takes the place of libunwind's. */
int unw_step(unw_cursor_t *cursor)
{
    static int (*next)(unw_cursor_t *);
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "_ULx86_64_step");
    steps++;
    return next(cursor);
}

static bool is_open(const char *source)
{
    return !ffm_ranges_overlap((uint64_t)source, (uint64_t)source + BYTES);
}

__attribute__((noinline)) static void write_there(volatile char *place)
{
    *place = 2;
}

/* Pinned memory that is sent again and again, with a wait after each time. While nothing is written there, its pages
 * stay as they are. What is written before a wait opens them, on their other half, too, and is no use of that wait. */
void ffm_test_sources_sent_again(void)
{
    const ffm_function pinned = {.kind = FFM_KIND_ALLOCATION, .memory = FFM_MEMORY_PINNED};
    upload_later up = (upload_later)hook("cuMemcpyHtoDAsync_v2", (void *)driver_upload_later);
    synchronize_stream sync = (synchronize_stream)hook("cuStreamSynchronize", (void *)driver_synchronize_stream);
    char *source = mmap(NULL, FFM_RANGES_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(source != MAP_FAILED);
    ffm_blocks_note(&pinned, &(ffm_operation){.destination = (uint64_t)source, .bytes = FFM_RANGES_PAGE});
    const size_t other_half = BYTES;
    const size_t written[] = {other_half, 0};
    for (size_t turn = 0; turn < sizeof written / sizeof *written; turn++) {
        assert(up((uint64_t)on_device, source, BYTES, 0) == 0 && sync(0) == 0);
        const uint64_t changes = ffm_protection_changes();
        for (int i = 0; i < OFTEN; i++)
            assert(up((uint64_t)on_device, source, BYTES, 0) == 0 && sync(0) == 0);
        assert(ffm_protection_changes() == changes);
        assert(up((uint64_t)on_device, source, BYTES, 0) == 0 && !is_open(source));
        *(volatile char *)&source[written[turn]] = 1;
        assert(is_open(source));
        assert(sync(0) == 0 && !is_open(source));
    }
    /* What is written after each wait is a use of it. Always from one place: so its stack is soon known. */
    uint32_t after[FFM_TEST_SOURCES_WRITTEN];
    for (int i = 0; i < FFM_TEST_SOURCES_WRITTEN; i++) {
        assert(up((uint64_t)on_device, source, BYTES, 0) == 0 && sync(0) == 0 && !is_open(source));
        write_there(source);
        after[i] = steps;
    }
    assert(after[0] > 0 && after[UNKNOWN - 1] == after[FFM_TEST_SOURCES_WRITTEN - 1]);
    ffm_blocks_remove((uint64_t)source);
    munmap(source, FFM_RANGES_PAGE);
}

#include "reached_memory.h"

#include <stdbool.h>

#include <cuda.h>

#include "blocks.h"
#include "device_writes.h"
#include "kernels.h"
#include "stand_in_driver.h"

/* While the memory that a kernel reaches is gone through, another thread frees other memory. */
void ffm_test_memory_freed_during_a_launch(void)
{
    enum { FIRST = 0x10000, LAST = 0x30000, BYTES = 0x1000, BLOCKS = 3 };
    const ffm_function allocation = {.kind = FFM_KIND_ALLOCATION, .memory = FFM_MEMORY_PINNED};
    for (uint64_t start = FIRST; start <= LAST; start += FIRST)
        ffm_blocks_note(&allocation, &(ffm_operation){.destination = start, .bytes = BYTES});
    uint64_t named = LAST;
    size_t bytes = sizeof named;
    void *packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &named, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    ffm_kernel_reach reach = {0};
    ffm_block block = {0};
    ffm_kernel_scan(&reach, 1, NULL, packed);
    assert(ffm_blocks_remove(FIRST) == BYTES);
    bool reached = false;
    while (ffm_kernel_next(&reach, &block))
        reached = reached || block.start == LAST;
    assert(reached);
    for (uint64_t start = FIRST; start <= LAST; start += FIRST)
        ffm_blocks_remove(start);
}

typedef int (*encode)(void *, int, int, uint64_t, void *, void *, int, int, unsigned, unsigned, void *, int, int, int,
                      int, int);

static int driver_encode(void *map, int type, int rank, uint64_t address, void *sizes, void *strides, int lower,
                         int upper, unsigned channels, unsigned pixels, void *steps, int interleave, int mode,
                         int swizzle, int promotion, int fill)
{
    (void)map, (void)type, (void)rank, (void)address, (void)sizes, (void)strides, (void)lower, (void)upper;
    (void)channels, (void)pixels, (void)steps, (void)interleave, (void)mode;
    assert(swizzle == 14 && promotion == 15 && fill == 16);
    return 0;
}

static bool reached_without_parameters(uint64_t start)
{
    ffm_kernel_reach reach = {0};
    ffm_block block = {0};
    while (ffm_kernel_next(&reach, &block))
        if (block.start == start)
            return true;
    return false;
}

/* Host memory and device memory for which there is a tensor map can be used by any kernel. */
void ffm_test_viewed_memory(void)
{
    enum { HOST = 0x10000, ON_DEVICE = 0x50000, OTHER = 0x60000, BYTES = 0x1000 };
    const ffm_function pinned = {.kind = FFM_KIND_ALLOCATION, .memory = FFM_MEMORY_PINNED};
    const ffm_function plain = {.kind = FFM_KIND_ALLOCATION, .memory = FFM_MEMORY_DEVICE};
    const ffm_function start = {.kind = FFM_KIND_LAUNCH, .parameters = 9, .extra = 10, .stream = -1, .source = -1};
    const ffm_box viewed = {ON_DEVICE, BYTES, BYTES, 1, BYTES, 1, true},
                  other = {OTHER, BYTES, BYTES, 1, BYTES, 1, true};
    const uint64_t none[FFM_LARGEST_ARITY] = {0};
    encode map = (encode)hook("cuTensorMapEncodeIm2colWide", (void *)driver_encode);
    ffm_blocks_note(&pinned, &(ffm_operation){.destination = HOST, .bytes = BYTES});
    ffm_device_writes_after(&plain, &(ffm_operation){.destination = ON_DEVICE, .bytes = BYTES});
    ffm_device_writes_after(&plain, &(ffm_operation){.destination = OTHER, .bytes = BYTES});
    assert(!reached_without_parameters(HOST));
    assert(map(NULL, 0, 0, HOST, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0, 14, 15, 16) == 0);
    assert(reached_without_parameters(HOST));
    ffm_blocks_remove(HOST);
    ffm_device_writes_before(&start, none, &(ffm_operation){0});
    assert(ffm_device_writes_last(&viewed) == 0 && ffm_device_writes_last(&other) == 0);
    assert(map(NULL, 0, 0, ON_DEVICE, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0, 14, 15, 16) == 0);
    ffm_device_writes_before(&start, none, &(ffm_operation){0});
    assert(ffm_device_writes_last(&viewed) != 0 && ffm_device_writes_last(&other) == 0);
}

/* What a kernel that is given an address leads to. */
static uint64_t led_to(uint64_t address)
{
    const ffm_function start = {.kind = FFM_KIND_LAUNCH, .parameters = 9, .extra = 10, .stream = -1, .source = -1};
    size_t bytes = sizeof address;
    void *packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &address, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                      CU_LAUNCH_PARAM_END};
    const uint64_t arguments[FFM_LARGEST_ARITY] = {[10] = (uint64_t)packed};
    ffm_operation operation = {0};
    ffm_device_writes_before(&start, arguments, &operation);
    return operation.destination;
}

/* An address of a row before an array leads to it if it is in no other memory. */
void ffm_test_rows_counted_from_one(void)
{
    enum { BEHIND_NOTHING = 0x100000, BYTES = 0x4000, ROW = 0x1000, NEXT = BEHIND_NOTHING + BYTES };
    const ffm_function plain = {.kind = FFM_KIND_ALLOCATION, .memory = FFM_MEMORY_DEVICE};
    ffm_device_writes_after(&plain, &(ffm_operation){.destination = BEHIND_NOTHING, .bytes = BYTES});
    ffm_device_writes_after(&plain, &(ffm_operation){.destination = NEXT, .bytes = BYTES});
    assert(led_to(BEHIND_NOTHING - ROW) == BEHIND_NOTHING);
    assert(led_to(BEHIND_NOTHING - BYTES) == BEHIND_NOTHING);
    assert(led_to(BEHIND_NOTHING - BYTES - 64) == FFM_LEADS_NOWHERE);
    assert(led_to(NEXT - ROW) == BEHIND_NOTHING);
    assert(led_to(NEXT + BYTES + 64) == FFM_LEADS_NOWHERE);
}

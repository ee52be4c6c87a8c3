/* The parameters of kernels, as an array and packed, from random bytes. Built with libFuzzer, AddressSanitizer and
 * UndefinedBehaviorSanitizer by fuzzing.py. */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "loaded_code.h"
#include "pageable.h"
#include "unread.h"

enum { MOST = 8 };

typedef struct {
    const uint8_t *data;
    size_t size;
} input;

static size_t sizes[MOST], parameters;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next bytes of the input, of which there may be fewer. */
static const uint8_t *take(input *from, size_t *bytes)
{
    const uint8_t *taken = from->data;
    *bytes = *bytes < from->size ? *bytes : from->size;
    from->data += *bytes;
    from->size -= *bytes;
    return taken;
}

static uint64_t next(input *from, size_t bytes)
{
    uint64_t value = 0;
    const uint8_t *taken = take(from, &bytes);
    if (bytes != 0)
        memcpy(&value, taken, bytes);
    return value;
}

/* As much memory as is left of the input, at most so much, and no more, so that a read beyond it is seen. */
static void *memory(input *from, size_t most, size_t *bytes)
{
    *bytes = most;
    const uint8_t *taken = take(from, bytes);
    void *copy = malloc(*bytes);
    if (copy != NULL && *bytes != 0)
        memcpy(copy, taken, *bytes);
    return copy;
}

static int parameter_info(uint64_t kernel, size_t place, size_t *offset, size_t *bytes)
{
    (void)kernel;
    *offset = 0;
    if (place >= parameters)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = sizes[place];
    return CUDA_SUCCESS;
}

uint32_t ffm_blocks_named(uint64_t address, uint32_t places[FFM_BLOCKS_NAMED])
{
    places[0] = (uint32_t)(address >> 8) % 2048;
    places[1] = (places[0] + 1) % 2048;
    return (uint32_t)(address % (FFM_BLOCKS_NAMED + 1));
}

bool ffm_blocks_at(uint32_t place, ffm_block *block)
{
    *block = (ffm_block){.bytes = place % 2};
    return place < 2048;
}

bool ffm_pageable_used(void)
{
    return true;
}

bool ffm_pageable_holds(uint64_t word)
{
    return word % 2 == 0;
}

bool ffm_loaded_code_ignores(uint64_t kernel, uint64_t offset, uint64_t word)
{
    return kernel == 1 && offset % 3 == 0 && word % 2 == 0;
}

bool ffm_loaded_code_reads(uint64_t kernel, uint64_t offset)
{
    return kernel == 1 && offset % 7 == 0;
}

bool ffm_loaded_code_leaves(uint64_t kernel, uint64_t offset, const ffm_given_values *given)
{
    if (given->count > FFM_PARAMETERS_FOLLOWED)
        abort();
    return kernel == 1 && offset % 5 == 0;
}

static void scan_array(input *from, ffm_kernel_reach *reach)
{
    void *values[MOST] = {NULL};
    parameters = next(from, 1) % (MOST + 1);
    for (size_t i = 0; i < parameters; i++) {
        values[i] = memory(from, next(from, 1), &sizes[i]);
        if (values[i] == NULL || sizes[i] == 0) {
            free(values[i]);
            values[i] = NULL;
            parameters = i;
        }
    }
    ffm_kernel_scan(reach, 1, values, NULL);
    for (size_t i = 0; i < MOST; i++)
        free(values[i]);
}

static void scan_packed(input *from, ffm_kernel_reach *reach)
{
    static void *const keys[4] = {CU_LAUNCH_PARAM_END, CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE,
                                  (void *)(uintptr_t)77};
    const uint64_t order = next(from, 2), excess = next(from, 8);
    size_t bytes;
    void *buffer = memory(from, 1u << 16, &bytes);
    if ((order >> 15) != 0) /* a size that no kernel has */
        bytes = excess > 32764 ? excess : 32765;
    else if (bytes > 32764)
        bytes = 32764;
    size_t pairs = 0;
    void **extra = calloc(2 * MOST + 1, sizeof *extra);
    if (extra == NULL)
        abort();
    do { /* ends with a key that ends it, at the latest after all pairs */
        extra[2 * pairs] = pairs == MOST ? CU_LAUNCH_PARAM_END : keys[(order >> (2 * pairs)) % 4];
        if (pairs < MOST)
            extra[2 * pairs + 1] = extra[2 * pairs] == CU_LAUNCH_PARAM_BUFFER_POINTER ? buffer : (void *)&bytes;
    } while (extra[2 * pairs] != CU_LAUNCH_PARAM_END && pairs++ < MOST);
    ffm_kernel_scan(reach, 1, NULL, extra);
    free(extra);
    free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input from = {data, size};
    ffm_kernel_reach reach = {.blocks = {1, 1, 1}};
    ffm_block block;
    ffm_kernels_ask((void *)(uintptr_t)parameter_info, NULL);
    if (next(&from, 1) % 2 == 0)
        scan_array(&from, &reach);
    else
        scan_packed(&from, &reach);
    uint32_t found = 0;
    while (ffm_kernel_next(&reach, &block))
        if (block.bytes == 0 || found++ > 2048)
            abort();
    return 0;
}

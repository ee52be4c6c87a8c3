#include "kernels.h"

#include <cuda.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "loaded_code.h"
#include "mappings.h"
#include "new_pages.h"
#include "pageable.h"

enum {
    TRACKED = 16 * 64,
    PARAMETERS = 4096,
    MANY_BYTES = 2048,    /* from here on it is cheaper to read once what is mapped */
    PACKED_BYTES = 32764, /* the most that a kernel has. CUDA C++ Programming Guide, "Function Parameters" */
};

typedef int (*parameter_function)(uint64_t, size_t, size_t *, size_t *);

static parameter_function function_parameter, kernel_parameter;

void ffm_kernels_ask(void *of_function, void *of_kernel)
{
    function_parameter = (parameter_function)(uintptr_t)of_function;
    kernel_parameter = (parameter_function)(uintptr_t)of_kernel;
}

void ffm_kernel_reach_block(ffm_kernel_reach *reach, uint32_t place)
{
    if (place >= TRACKED)
        reach->all = true;
    else
        reach->reached[place / 64] |= 1ULL << (place % 64);
}

/* All that a kernel is given: an array of parameters, or NULL and so many bytes. */
typedef struct {
    uint64_t kernel;
    void *const *parameters;
    const void *packed;
    size_t packed_bytes;
    ffm_given_values *values; /* the same, once that was asked for */
    bool too_many;            /* for that */
} launch;

/* A part of it: bytes at an offset from the first parameter. */
typedef struct {
    launch *of;
    const void *words;
    size_t bytes, offset;
} given;

/* Bytes of a parameter and where they are, 0 after the last; false if the driver does not report them. */
static bool parameter_bytes(uint64_t kernel, size_t place, size_t *offset, size_t *bytes)
{
    const parameter_function ask[2] = {function_parameter, kernel_parameter};
    for (int i = 0; i < 2; i++) {
        if (ask[i] == NULL)
            continue;
        int result = ask[i](kernel, place, offset, bytes);
        if (result == CUDA_SUCCESS)
            return true;
        if (result == CUDA_ERROR_INVALID_VALUE) {
            *bytes = 0;
            return true;
        }
    }
    return false;
}

/* False if that is more than can be followed. */
static bool add_values(ffm_given_values *values, const void *from, size_t offset, size_t bytes)
{
    if (offset > FFM_PARAMETERS_FOLLOWED || bytes > FFM_PARAMETERS_FOLLOWED - offset)
        return false;
    memcpy(values->bytes + offset, from, bytes);
    memset(values->known + offset, true, bytes);
    if (offset + bytes > values->count)
        values->count = (uint32_t)(offset + bytes);
    return true;
}

static bool gather(const launch *of, ffm_given_values *values)
{
    size_t offset, bytes;
    if (of->parameters == NULL)
        return add_values(values, of->packed, 0, of->packed_bytes);
    for (size_t place = 0; parameter_bytes(of->kernel, place, &offset, &bytes); place++)
        if (bytes == 0)
            return true;
        else if (!add_values(values, of->parameters[place], offset, bytes))
            return false;
    return false;
}

/* Whether the kernel leaves a word alone when it is launched so. */
static bool leaves(const ffm_kernel_reach *reach, launch *of, uint64_t offset)
{
    if (of->values == NULL && !of->too_many && reach->blocks[0] != 0) {
        of->values = ffm_new_pages(sizeof *of->values);
        of->too_many = of->values == NULL || !gather(of, of->values);
    }
    if (of->values == NULL || of->too_many)
        return false;
    memcpy(of->values->blocks, reach->blocks, sizeof reach->blocks);
    return ffm_loaded_code_leaves(of->kernel, offset, of->values);
}

static void forget(const launch *of)
{
    if (of->values != NULL)
        munmap(of->values, sizeof *of->values);
}

/* Whether the kernel uses no word there as an address: by its code, or as it is launched. */
static bool unused(const ffm_kernel_reach *reach, const given *part, size_t offset, uint64_t word)
{
    const uint64_t kernel = part->of->kernel, place = part->offset + offset;
    return ffm_loaded_code_ignores(kernel, place, word) ||
           (!ffm_loaded_code_reads(kernel, place) && leaves(reach, part->of, place));
}

static void scan_word(ffm_kernel_reach *reach, const given *part, size_t offset, const ffm_mapped *mapped)
{
    uint64_t word;
    uint32_t places[FFM_BLOCKS_NAMED];
    memcpy(&word, (const char *)part->words + offset, sizeof word);
    if (reach->each != NULL)
        reach->each(word, part->offset + offset, reach->context);
    const uint32_t count = ffm_blocks_named(word, places);
    const bool ordinary = count == 0 && !reach->pageable && (mapped == NULL || ffm_mapped_may_hold(mapped, word)) &&
                          ffm_pageable_holds(word);
    if ((count == 0 && !ordinary) || unused(reach, part, offset, word))
        return;
    for (uint32_t i = 0; i < count; i++)
        ffm_kernel_reach_block(reach, places[i]);
    if (ordinary) {
        reach->pageable = true;
        reach->kernel = part->of->kernel;
        reach->offset = (uint32_t)(part->offset + offset);
    }
}

/* `mapped` is where ordinary memory may be; NULL to ask the kernel for each word. */
static void scan_words(ffm_kernel_reach *reach, const given *part, const ffm_mapped *mapped)
{
    for (size_t offset = 0; offset + sizeof(uint64_t) <= part->bytes; offset += sizeof(uint64_t))
        scan_word(reach, part, offset, mapped);
}

static __attribute__((noinline)) void scan_many(ffm_kernel_reach *reach, const given *part)
{
    ffm_mapped mapped;
    ffm_mappings_all(&mapped);
    scan_words(reach, part, &mapped);
}

static void scan(ffm_kernel_reach *reach, const given part)
{
    if (part.bytes >= MANY_BYTES && !reach->pageable && ffm_pageable_used())
        scan_many(reach, &part);
    else
        scan_words(reach, &part, NULL);
}

static void reach_everything(ffm_kernel_reach *reach, uint64_t kernel)
{
    reach->all = true;
    reach->all_parameters = true;
    reach->kernel = kernel;
    reach->pageable = ffm_pageable_used();
}

static void scan_parameters(ffm_kernel_reach *reach, launch *of)
{
    for (size_t place = 0; place < PARAMETERS; place++) {
        size_t offset, bytes;
        if (!parameter_bytes(of->kernel, place, &offset, &bytes)) {
            reach_everything(reach, of->kernel);
            return;
        }
        if (bytes == 0)
            return;
        scan(reach, (given){of, of->parameters[place], bytes, offset});
    }
}

/* The packed form: pairs of a key and a value up to CU_LAUNCH_PARAM_END. What follows a key that is none, the driver
 * does not read either. Where the size cannot be right, the driver may know better what the kernel receives. */
static void scan_packed(ffm_kernel_reach *reach, launch *of, void *const *extra)
{
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER || extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (extra[1] != NULL)
            memcpy(&bytes, extra[1], sizeof bytes);
    }
    if (bytes > PACKED_BYTES)
        reach_everything(reach, of->kernel);
    else if (buffer != NULL) {
        of->packed = buffer;
        of->packed_bytes = bytes;
        scan(reach, (given){of, buffer, bytes, 0});
    }
}

void ffm_kernel_scan(ffm_kernel_reach *reach, uint64_t kernel, void *const *parameters, void *const *extra)
{
    launch of = {.kernel = kernel, .parameters = parameters};
    if (parameters != NULL)
        scan_parameters(reach, &of);
    else if (extra != NULL)
        scan_packed(reach, &of, extra);
    forget(&of);
}

bool ffm_kernel_next(ffm_kernel_reach *reach, ffm_block *block)
{
    for (; !reach->none && ffm_blocks_at(reach->next, block); reach->next++) {
        uint32_t place = reach->next;
        if (block->bytes == 0)
            continue;
        if (reach->all || block->handed ||
            (place < TRACKED && (reach->reached[place / 64] & 1ULL << (place % 64)) != 0)) {
            reach->next++;
            return true;
        }
    }
    return false;
}

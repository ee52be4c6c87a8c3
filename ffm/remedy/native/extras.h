/* Driver functions beyond the catalogue; see extra_functions.def. */
#ifndef FFM_REMEDY_EXTRAS_H
#define FFM_REMEDY_EXTRAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
#define EXTRA(name) FFM_EXTRA_##name,
#include "extra_functions.def"
#undef EXTRA
    FFM_EXTRA_COUNT
};

/* Code to put in place of a function; NULL for an index outside. */
void *ffm_extra_wrapper(uint32_t extra);

void ffm_extra_bind(uint32_t extra, const void *address, void *original);
bool ffm_extra_is_bound(const void *address);

/* Whether the device's primary context lives. True where the driver cannot say. */
bool ffm_primary_active(uint64_t device);

/* Whether the address is managed memory. */
bool ffm_is_managed(uint64_t address);

/* Where the driver knows an address to be. */
typedef enum {
    FFM_PLACE_UNKNOWN,  /* it cannot say, or it is none of the others */
    FFM_PLACE_PAGEABLE, /* nowhere: the program's ordinary memory */
    FFM_PLACE_HOST,     /* pinned or registered */
    FFM_PLACE_DEVICE    /* device memory that is not managed */
} ffm_place;

ffm_place ffm_place_of(uint64_t address);

/* Whether some device reads ordinary memory by itself, through the page tables of the CPU, so that copies from there
 * need not be staged. True where the driver cannot say. */
bool ffm_ordinary_memory_is_read_later(void);

/* Bytes of the device's memory; 0 where the driver does not say. */
size_t ffm_device_memory(void);

/* Offset and size of a kernel's parameter; the CUresult of cuFuncGetParamInfo or cuKernelGetParamInfo. */
int ffm_parameter(uint64_t function, bool kernel, size_t index, size_t *offset, size_t *bytes);

/* Whether the driver tells kernels' parameters (CUDA 12.4 and later). */
bool ffm_parameters_known(void);

#endif

/* Driver functions that corrections replace besides the catalogue's rows: those of its `extra`. */
#ifndef FFM_REMEDY_EXTRAS_H
#define FFM_REMEDY_EXTRAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalogue.h"

void ffm_extra_bind(uint32_t extra, const void *address, void *original);
bool ffm_extra_is_bound(const void *address);

/* The function without its hook, as soon as it is bound. */
void *ffm_extra_original(uint32_t extra);

/* Whether the device's primary context exists. True if the driver cannot say. */
bool ffm_primary_active(uint64_t device);

/* Whether the address is managed memory. */
bool ffm_is_managed(uint64_t address);

/* The kind of memory that the driver reports for an address. */
typedef enum {
    FFM_PLACE_UNKNOWN,  /* the driver cannot say, or it is none of the others */
    FFM_PLACE_PAGEABLE, /* not known to the driver: the program's ordinary memory */
    FFM_PLACE_HOST,     /* pinned or registered */
    FFM_PLACE_DEVICE    /* device memory that is not managed */
} ffm_place;

ffm_place ffm_place_of(uint64_t address);

/* Whether some device reads ordinary memory by itself, through the page tables of the CPU, so that copies from there
 * need not be staged. True if the driver cannot say. */
bool ffm_ordinary_memory_is_read_later(void);

/* Whether kernels of some device can use ordinary memory by its address. Asked once; true if the driver cannot say. */
bool ffm_ordinary_memory_is_used(void);

/* Bytes of the device's memory that are free; 0 if the driver does not report them. */
size_t ffm_free_device_memory(void);

/* Offset and size of a kernel's parameter; the CUresult of cuFuncGetParamInfo or cuKernelGetParamInfo. */
int ffm_parameter(uint64_t function, bool kernel, size_t index, size_t *offset, size_t *bytes);

/* Whether the driver reports kernels' parameters (CUDA 12.4 and later). */
bool ffm_parameters_known(void);

#endif

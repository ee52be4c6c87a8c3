/* The driver's own functions, as the library itself calls them. These calls meet no hook. */
#ifndef FFM_REMEDY_DRIVER_H
#define FFM_REMEDY_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Handles of the default streams, whatever the variant of the call (cuda.h: CU_STREAM_LEGACY, _PER_THREAD). */
enum { FFM_LEGACY_STREAM = 1, FFM_PER_THREAD_STREAM = 2 };

enum { FFM_CUDA_SUCCESS = 0, FFM_CUDA_INVALID_VALUE = 1, FFM_CUDA_OUT_OF_MEMORY = 2, FFM_CUDA_NOT_READY = 600 };

typedef uint64_t ffm_handle;

/* DRIVER(field, exported name, parameters): all return a CUresult. */
#define FFM_DRIVER_FUNCTIONS(DRIVER)                                                                                   \
    DRIVER(event_create, cuEventCreate, (ffm_handle * event, unsigned flags))                                          \
    DRIVER(event_record, cuEventRecord, (ffm_handle event, ffm_handle stream))                                         \
    DRIVER(event_query, cuEventQuery, (ffm_handle event))                                                              \
    DRIVER(event_synchronize, cuEventSynchronize, (ffm_handle event))                                                  \
    DRIVER(stream_wait_event, cuStreamWaitEvent, (ffm_handle stream, ffm_handle event, unsigned flags))                \
    DRIVER(stream_query, cuStreamQuery, (ffm_handle stream))                                                           \
    DRIVER(stream_synchronize, cuStreamSynchronize, (ffm_handle stream))                                               \
    DRIVER(push_context, cuCtxPushCurrent_v2, (uint64_t context))                                                      \
    DRIVER(pop_context, cuCtxPopCurrent_v2, (uint64_t *context))                                                       \
    DRIVER(context_synchronize, cuCtxSynchronize, (void))                                                              \
    DRIVER(allocate, cuMemAlloc_v2, (uint64_t *address, size_t bytes))                                                 \
    DRIVER(release, cuMemFree_v2, (uint64_t address))                                                                  \
    DRIVER(allocate_host, cuMemAllocHost_v2, (void **address, size_t bytes))                                           \
    DRIVER(release_host, cuMemFreeHost, (void *address))                                                               \
    DRIVER(upload, cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, ffm_handle stream))             \
    DRIVER(download, cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, ffm_handle stream))                 \
    DRIVER(copy, cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, ffm_handle stream))                  \
    DRIVER(set_words, cuMemsetD32Async, (uint64_t to, unsigned value, size_t count, ffm_handle stream))

typedef struct {
#define DRIVER(field, name, parameters) int(*field) parameters;
    FFM_DRIVER_FUNCTIONS(DRIVER)
#undef DRIVER
} ffm_driver_table;

extern ffm_driver_table ffm_driver;

/* Look the functions up, once all hooks are in place; false if one is missing. */
bool ffm_driver_resolve(void);

#endif

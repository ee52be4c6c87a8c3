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

/* DRIVER(field, purpose in the catalogue's own_calls, parameters): all return a CUresult. */
#define FFM_DRIVER_FUNCTIONS(DRIVER)                                                                                   \
    DRIVER(event_create, CREATE_EVENT, (ffm_handle * event, unsigned flags))                                           \
    DRIVER(event_record, RECORD_EVENT, (ffm_handle event, ffm_handle stream))                                          \
    DRIVER(event_query, QUERY_EVENT, (ffm_handle event))                                                               \
    DRIVER(event_synchronize, SYNCHRONIZE_EVENT, (ffm_handle event))                                                   \
    DRIVER(stream_wait_event, WAIT_FOR_EVENT, (ffm_handle stream, ffm_handle event, unsigned flags))                   \
    DRIVER(stream_query, QUERY_STREAM, (ffm_handle stream))                                                            \
    DRIVER(stream_synchronize, SYNCHRONIZE_STREAM, (ffm_handle stream))                                                \
    DRIVER(push_context, PUSH_CONTEXT, (uint64_t context))                                                             \
    DRIVER(pop_context, POP_CONTEXT, (uint64_t *context))                                                              \
    DRIVER(context_synchronize, SYNCHRONIZE_CONTEXT, (void))                                                           \
    DRIVER(allocate, ALLOCATE, (uint64_t *address, size_t bytes))                                                      \
    DRIVER(release, FREE, (uint64_t address))                                                                          \
    DRIVER(allocate_host, ALLOCATE_PINNED, (void **address, size_t bytes))                                             \
    DRIVER(release_host, FREE_PINNED, (void *address))                                                                 \
    DRIVER(upload, UPLOAD_LATER, (uint64_t to, const void *from, size_t bytes, ffm_handle stream))                     \
    DRIVER(download, DOWNLOAD_LATER, (void *to, uint64_t from, size_t bytes, ffm_handle stream))                       \
    DRIVER(copy, COPY_LATER, (uint64_t to, uint64_t from, size_t bytes, ffm_handle stream))                            \
    DRIVER(set_words, SET_WORDS_LATER, (uint64_t to, unsigned value, size_t count, ffm_handle stream))

typedef struct {
#define DRIVER(field, purpose, parameters) int(*field) parameters;
    FFM_DRIVER_FUNCTIONS(DRIVER)
#undef DRIVER
} ffm_driver_table;

extern ffm_driver_table ffm_driver;

/* Look the functions up, once all hooks are in place; false if one is missing. */
bool ffm_driver_resolve(void);

#endif

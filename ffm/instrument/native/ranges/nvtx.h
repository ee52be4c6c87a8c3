/* What NVTX, NVIDIA's tools extension, expects of a library that wants to hear of a program's ranges
 * (NVTX_INJECTION64_PATH; nvtx3/nvtxDetail/nvtxTypes.h of NVTX 3). */
#ifndef FFM_NVTX_H
#define FFM_NVTX_H

#include <stddef.h>
#include <stdint.h>

typedef void (*ffm_nvtx_function)(void);

/* `table` becomes an array of pointers to NVTX's own pointers to the tool's functions, which are NULL at first. */
typedef struct {
    size_t bytes;
    int (*function_table)(int module, ffm_nvtx_function ***table, unsigned *size);
} ffm_nvtx_callbacks;

enum { FFM_NVTX_CALLBACKS = 1 };                  /* the export table with the above */
enum { FFM_NVTX_CORE = 1, FFM_NVTX_DOMAINS = 5 }; /* modules */

enum {
    FFM_NVTX_START_EX = 4,
    FFM_NVTX_START_A = 5,
    FFM_NVTX_START_W = 6,
    FFM_NVTX_END = 7,
    FFM_NVTX_PUSH_EX = 8,
    FFM_NVTX_PUSH_A = 9,
    FFM_NVTX_PUSH_W = 10,
    FFM_NVTX_POP = 11
}; /* functions of FFM_NVTX_CORE */

enum {
    FFM_NVTX_DOMAIN_START_EX = 2,
    FFM_NVTX_DOMAIN_END = 3,
    FFM_NVTX_DOMAIN_PUSH_EX = 4,
    FFM_NVTX_DOMAIN_POP = 5,
    FFM_NVTX_REGISTER_A = 10,
    FFM_NVTX_REGISTER_W = 11
}; /* functions of FFM_NVTX_DOMAINS */

enum { FFM_NVTX_NO_MESSAGE = 0, FFM_NVTX_ASCII = 1, FFM_NVTX_UNICODE = 2, FFM_NVTX_REGISTERED = 3 };

/* A range's attributes; later versions append to them. */
typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
} ffm_nvtx_attributes;

#endif

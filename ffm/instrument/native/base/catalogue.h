/* The table of driver functions, generated from ffm/driver/catalogue.toml. */
#ifndef FFM_CATALOGUE_H
#define FFM_CATALOGUE_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.inc"

/* Argument positions count from 0; -1 means that the function has no such argument. */
typedef struct {
    const char *name;
    int8_t arity;
    uint8_t kind;
    uint8_t memory;
    uint8_t direction;
    uint8_t shape;
    int8_t destination;
    int8_t source;
    int8_t bytes;
    int8_t stream;
    int8_t result; /* pointer through which the call returns an address or object */
    int8_t handle;
    int8_t parameters; /* of a kernel: their addresses, */
    int8_t extra;      /* or a list that describes them */
    int8_t node;
    int8_t description;
    int8_t flags;
    uint8_t element; /* bytes per element if `bytes` counts elements, otherwise 1 */
    uint8_t asynchronous;
    uint8_t per_thread_stream;
    uint8_t awaits;
    uint8_t effect;
} ffm_function;

extern const ffm_function ffm_catalogue[FFM_FUNCTION_COUNT];

#endif

/* The containers ("fat binaries") in which programs give device code to the driver: machine code and PTX, each for one
 * architecture, mostly compressed. ffm/driver/device_code.py reads their layout, too. */
#ifndef FFM_CONTAINERS_H
#define FFM_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Machine code in a container. It has `bytes` bytes there, and `plain` bytes when it is unpacked. */
typedef struct {
    const uint8_t *packed;
    size_t bytes, plain;
    uint64_t flags;
    uint32_t architecture; /* 10 * major + minor */
} ffm_contained_code;

/* The address of the container that nvcc's wrapper names. At least its first 16 bytes are given. If it is no wrapper,
 * the given address. */
uint64_t ffm_container_within(const uint8_t *begin, uint64_t address);

/* The size of a container in bytes, of which at least the first 16 are given; 0 if it is none. */
size_t ffm_container_bytes(const uint8_t *begin);

/* Find the next machine code behind `place`, which is 0 at first, in a container of `bytes` bytes. Nothing outside the
 * container is read, whatever it contains. */
bool ffm_container_next(const uint8_t *container, size_t bytes, size_t *place, ffm_contained_code *found);

/* Unpack machine code to where `plain` bytes fit. Returns whether it is all there. */
bool ffm_container_unpack(const ffm_contained_code *code, uint8_t *plain);

#endif

/* Device code that a program gives to the driver, in its memory: which words of their parameters its kernels do not use
 * as addresses. Known of machine code, also in containers. */
#ifndef FFM_CODE_IMAGE_H
#define FFM_CODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parameter_values.h"

/* Of a word that is an address of user space, with four levels of page tables: the others are 0. */
enum { FFM_ADDRESS_BYTES = 6 };

/* Kernels, one behind the other, of so many pieces of machine code. */
typedef struct {
    char *kernels;
    size_t used, room;
    uint32_t codes;
} ffm_code_image;

/* Provide the driver's own query about a device: cuDeviceGetAttribute, called without its hook; NULL if it has none. */
void ffm_code_image_ask(void *device_attribute);

/* Read what begins at an address: machine code, or a container of it, of which that counts which a GPU of this machine
 * can run. Empty if it is neither, or not wholly mapped. */
ffm_code_image ffm_code_image_read(uint64_t address);

/* Whether a kernel cannot use a word at an offset from the start of its parameters as an address, in any of the machine
 * code. */
bool ffm_code_image_ignores(const ffm_code_image *image, const char *name, uint64_t offset, uint64_t word);

/* Which bytes of its parameters a kernel may read when it is launched so, in any of the machine code. False if that is
 * not known. */
bool ffm_code_image_reads(const ffm_code_image *image, const char *name, const ffm_given_values *given,
                          ffm_values_read *result);

/* Whether the kernel is known in all of the machine code. */
bool ffm_code_image_knows(const ffm_code_image *image, const char *name);

void ffm_code_image_free(ffm_code_image *image);

#endif

/* Device code that a program has in its memory and gives to the driver: which words of their parameters its kernels do
 * not use as addresses. Known for machine code, also in containers. */
#ifndef FFM_CODE_IMAGE_H
#define FFM_CODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parameter_values.h"

/* The low bytes of a word that can differ from 0 in an address of user space, with four levels of page tables. */
enum { FFM_ADDRESS_BYTES = 6 };

/* The kernels of `codes` pieces of machine code, one behind the other. */
typedef struct {
    char *kernels;
    size_t used, room;
    uint32_t codes;
} ffm_code_image;

/* Provide the driver's own query about a device: cuDeviceGetAttribute, called without its hook; NULL if it has none. */
void ffm_code_image_ask(void *device_attribute);

/* Read what begins at an address: machine code, or a container of it. In a container, only the code counts that a GPU
 * of this machine can run. Empty if it is neither, or is not wholly mapped. */
ffm_code_image ffm_code_image_read(uint64_t address);

/* Whether a kernel cannot use a word at an offset from the start of its parameters as an address, in any of the machine
 * code. */
bool ffm_code_image_ignores(const ffm_code_image *image, const char *name, uint64_t offset, uint64_t word);

/* Which bytes of its parameters a kernel may read in such a launch, in any of the machine code. False if that is not
 * known. */
bool ffm_code_image_reads(const ffm_code_image *image, const char *name, const ffm_given_values *given,
                          ffm_values_read *result);

/* Whether the kernel is known in all of the machine code. */
bool ffm_code_image_knows(const ffm_code_image *image, const char *name);

/* Whether a kernel uses no variables of its code, in any of the machine code, unless it finds their addresses. */
bool ffm_code_image_lacks_variables(const ffm_code_image *image, const char *name);

void ffm_code_image_free(ffm_code_image *image);

#endif

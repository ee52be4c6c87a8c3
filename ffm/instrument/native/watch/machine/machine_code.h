/* The kernels of machine code (a cubin), and which bytes of their parameters they read. */
#ifndef FFM_MACHINE_CODE_H
#define FFM_MACHINE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel all of whose instructions are known. `read` has a bit for each of the first `bytes` bytes of its parameters,
 * which begin in constant bank 0 where ffm_parameters_begin says. */
typedef struct {
    const char *name;
    const uint8_t *read, *text;
    uint64_t text_bytes;
    uint32_t bytes, architecture;
    bool asserts;   /* constant bank 4 names no function but the one that prints failed assertions */
    bool variables; /* it may use variables of its code without being given their addresses, which are in constant banks
                       other than 0 */
} ffm_kernel_code;

/* The size of machine code, of which the first `begin` bytes are given: at least its header. 0 if its layout is not
 * known. */
size_t ffm_machine_code_bytes(const uint8_t *code, size_t begin);

/* Call `found` with each kernel of an image that has parameters. Nothing outside the image's `bytes` bytes is read,
 * whatever it contains. */
void ffm_machine_code_kernels(const uint8_t *code, size_t bytes, void (*found)(const ffm_kernel_code *, void *),
                              void *context);

#endif

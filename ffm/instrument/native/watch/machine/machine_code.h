/* The kernels of machine code (a cubin), and which bytes of their parameters they read. */
#ifndef FFM_MACHINE_CODE_H
#define FFM_MACHINE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel all instructions of which are known. `read` has a bit for each of so many bytes of its parameters, counted
 * from the first one, which begins in constant bank 0 where ffm_parameters_begin says. */
typedef struct {
    const char *name;
    const uint8_t *read, *text;
    uint64_t text_bytes;
    uint32_t bytes, architecture;
    bool asserts; /* constant bank 4 names no function but the one that prints failed assertions */
} ffm_kernel_code;

/* Of how many bytes the machine code is that begins with so many of them: at least as many as its header has. 0 if it
 * is none of a known layout. */
size_t ffm_machine_code_bytes(const uint8_t *code, size_t begin);

/* Call `found` with each kernel in an image of so many bytes that has parameters. Nothing outside the image is read,
 * whatever it contains. */
void ffm_machine_code_kernels(const uint8_t *code, size_t bytes, void (*found)(const ffm_kernel_code *, void *),
                              void *context);

#endif

/* Which host memory a kernel can access: the blocks whose addresses are among its parameters, and those whose addresses
 * were uploaded. If the driver does not report the sizes of parameters (before CUDA 12.4), all blocks. */
#ifndef FFM_KERNELS_H
#define FFM_KERNELS_H

#include <stdbool.h>

#include "blocks.h"
#include "parameter_values.h"

typedef struct {
    uint64_t reached[16]; /* indices of blocks that parameters point to, one bit each */
    bool all;
    bool pageable;       /* it can access ordinary memory of the program, and everything reachable from there */
    uint64_t kernel;     /* the kernel that can; 0 if it is not known */
    uint32_t offset;     /* bytes from its first parameter to what may be an address of such memory */
    bool all_parameters; /* any of them may be */
    uint32_t blocks[3];  /* of the launch, in x, y and z; 0 if that is not known */
    bool none;           /* a graph without kernels */
    uint32_t next;
    /* Called with each word of the parameters and its offset from the first one, unless NULL. */
    void (*each)(uint64_t word, uint64_t offset, void *context);
    void *context;
} ffm_kernel_reach;

/* Examine the parameters of a kernel, as an array or in the packed form. */
void ffm_kernel_scan(ffm_kernel_reach *reach, uint64_t kernel, void *const *parameters, void *const *extra);

/* The kernel can access the block with this index. */
void ffm_kernel_reach_block(ffm_kernel_reach *reach, uint32_t place);

/* The next block that it can access; false after the last. */
bool ffm_kernel_next(ffm_kernel_reach *reach, ffm_block *block);

/* Provide the driver's own queries about a kernel's parameters: cuFuncGetParamInfo, cuKernelGetParamInfo; NULL if it
 * has none. */
void ffm_kernels_ask(void *function_parameter, void *kernel_parameter);

#endif

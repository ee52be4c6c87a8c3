/* The module image of the virtual GPU: a table of host functions that stand for kernels.
 *
 * A program that g++ compiled hands this image to `__cudaRegisterFatBinary`, in a wrapper, where a program that nvcc
 * compiled hands over a fat binary. The virtual driver's `cuModuleLoadData` and `cuLibraryLoadData` take it
 * too, with and without the wrapper.
 */
#ifndef KERNEL_IMAGE_H
#define KERNEL_IMAGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "vGPU" in little-endian byte order, behind the header of an ELF file for NVIDIA's machine (190) without sections: a
 * reader that takes the image for machine code finds that it has no variables. */
#define KERNEL_IMAGE_MAGIC 0x55504776u
#define KERNEL_IMAGE_VERSION 3u
#define KERNEL_IMAGE_HEADER {0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 190, 0, 1}

/* One kernel: runs a whole grid in the calling thread.
 *
 * `grid` and `block` are three extents each (x, y, z); `arguments[i]` points at parameter i. */
typedef void (*KernelRun)(const uint32_t grid[3], const uint32_t block[3], void *const *arguments);

/* Where a parameter lies in the kernel's packed parameters: those of a structure with these members, in bytes. */
struct KernelParameter {
    uint32_t offset;
    uint32_t size;
};

struct KernelEntry {
    const char *name;
    KernelRun run;
    const struct KernelParameter *parameters;
    uint32_t parameter_count;
    const struct KernelEntry *next; /* NULL at the end of the image's list */
};

struct KernelImage {
    unsigned char header[64];
    uint32_t magic;
    uint32_t version;
    const struct KernelEntry *first; /* NULL: an image without kernels */
};

/* What `__cudaRegisterFatBinary` takes, as `fatbinary_section.h` of CUDA has it: NVIDIA's runtime looks at it before
 * it hands it to the driver. */
#define KERNEL_WRAPPER_MAGIC 0x466243b1u
#define KERNEL_WRAPPER_VERSION 1u
#define KERNEL_WRAPPER_LINKED 2u /* the version of a program whose device code was linked (`nvcc -rdc=true`) */

struct KernelWrapper {
    uint32_t magic;
    uint32_t version;
    const void *image;
    void *parts; /* of linked code: the containers before linking, up to a null pointer */
};

#ifdef __cplusplus
}
#endif
#endif

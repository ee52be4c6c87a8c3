/* Texels in device memory, and the CUDA arrays and objects through which programs use them. */
#pragma once

#include "copy.h"

namespace vgpu
{

/* Rows of texels without gaps between rows in arrays; with a pitch in linear memory. */
struct Image {
    char *memory = nullptr;
    CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
    unsigned channels = 1;
    std::size_t width = 1, height = 1, depth = 1; /* texels; `depth` counts the layers of layered arrays */
    std::size_t row_pitch = 0, slice_pitch = 0;   /* bytes */
    bool linear = false;                          /* linear memory of one row, outside of which zeros are read */

    std::size_t texel_bytes() const;
};

/* Bytes of one channel; 0 for formats that are not there. */
std::size_t channel_bytes(CUarray_format format);

/* Whether a texel of it is a whole number. */
bool is_integer(CUarray_format format);

struct Array {
    CUDA_ARRAY3D_DESCRIPTOR description;
    Image image;
    CUcontext context;
};

/* The array behind the handle; false if there is none. */
bool find_array(CUarray handle, Array &found);

/* One side of a copy that begins `x` bytes into row `y` of slice `z`. CUDA_ERROR_INVALID_HANDLE for no array,
 * CUDA_ERROR_INVALID_VALUE for a box that exceeds it. */
CUresult array_side(CUarray handle, std::size_t x, std::size_t y, std::size_t z, const CopyShape &shape,
                    CopySide &side);

/* A texture object or a surface object. */
struct ImageObject {
    Image image;
    bool is_surface = false;
    CUDA_RESOURCE_DESC resource = {};
    CUDA_TEXTURE_DESC texture = {};
    CUcontext context = nullptr;
};

/* The object with that number; null if there is none. Kernels ask at each access, so it takes no lock. */
const ImageObject *find_image_object(std::uint64_t number);

} // namespace vgpu

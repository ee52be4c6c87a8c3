/* cuModuleLoad: loads an image from a file. */
#include <fstream>
#include <iterator>
#include <string>

#include "foundation/cuda_api.h"

DRIVER_IMPLEMENTATION(cuModuleLoadData);

DRIVER_CALL(cuModuleLoad)(CUmodule *module, const char *path)
{
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    /* PTX must end with a zero byte, which std::string adds. */
    const std::string image(std::istreambuf_iterator<char>(file), {});
    return image.empty() ? CUDA_ERROR_INVALID_IMAGE : implementation_cuModuleLoadData(module, image.c_str());
}

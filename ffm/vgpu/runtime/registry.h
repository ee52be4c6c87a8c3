/* What programs and libraries register when they start: images, and the kernels and variables in them. */
#pragma once

#include "runtime_api.h"

namespace cudart
{

/* The kernel that stands behind a host function; its image is loaded when a kernel or variable of it is first used. A
 * cudaKernel_t stands for itself (CUDA Runtime API, cudaLaunchKernel). cudaErrorInvalidDeviceFunction where there is
 * none, or what loading the image answered. */
cudaError_t find_kernel(const void *host_function, CUkernel &kernel);

/* The device variable that stands behind a host variable. cudaErrorInvalidSymbol where there is none, or what loading
 * the image answered. */
cudaError_t find_variable(const void *symbol, CUdeviceptr &address, std::size_t &size);

} // namespace cudart

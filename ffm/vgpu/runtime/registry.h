/* What programs and libraries register when they start: images, and the kernels and variables in them. */
#pragma once

#include "runtime_api.h"

namespace cudart
{

/* The kernel behind a host function; its image is loaded when one of its kernels or variables is first used. A
 * cudaKernel_t stands for itself (CUDA Runtime API, cudaLaunchKernel). cudaErrorInvalidDeviceFunction if there is none,
 * or the error from loading the image. */
cudaError_t find_kernel(const void *host_function, CUkernel &kernel);

/* The device variable behind a host variable. cudaErrorInvalidSymbol if there is none, or the error from loading the
 * image. */
cudaError_t find_variable(const void *symbol, CUdeviceptr &address, std::size_t &size);

} // namespace cudart

/* The names and texts of errors. The runtime has its own, because programs ask for them even without a driver. */
#include "runtime_api.h"

namespace
{

struct Description {
    cudaError_t code;
    const char *name;
    const char *text;
};

#define DESCRIBE(code, text) {code, #code, text}

const Description descriptions[] = {
    DESCRIBE(cudaSuccess, "no error"),
    DESCRIBE(cudaErrorInvalidValue, "invalid argument"),
    DESCRIBE(cudaErrorMemoryAllocation, "out of memory"),
    DESCRIBE(cudaErrorInitializationError, "initialization error"),
    DESCRIBE(cudaErrorCudartUnloading, "driver shutting down"),
    DESCRIBE(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    DESCRIBE(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    DESCRIBE(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    DESCRIBE(cudaErrorStubLibrary, "CUDA driver is a stub library"),
    DESCRIBE(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    DESCRIBE(cudaErrorCallRequiresNewerDriver, "API call is not supported in the installed CUDA driver"),
    DESCRIBE(cudaErrorInvalidDeviceFunction, "invalid device function"),
    DESCRIBE(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    DESCRIBE(cudaErrorInvalidDevice, "invalid device ordinal"),
    DESCRIBE(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    DESCRIBE(cudaErrorDeviceUninitialized, "invalid device context"),
    DESCRIBE(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    DESCRIBE(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
    DESCRIBE(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    DESCRIBE(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    DESCRIBE(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    DESCRIBE(cudaErrorSymbolNotFound, "named symbol not found"),
    DESCRIBE(cudaErrorNotReady, "device not ready"),
    DESCRIBE(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    DESCRIBE(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    DESCRIBE(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    DESCRIBE(cudaErrorLaunchFailure, "unspecified launch failure"),
    DESCRIBE(cudaErrorNotPermitted, "operation not permitted"),
    DESCRIBE(cudaErrorNotSupported, "operation not supported"),
    DESCRIBE(cudaErrorUnknown, "unknown error"),
};

const char *describe(cudaError_t code, const char *Description::*member)
{
    for (const Description &description : descriptions) {
        if (description.code == code)
            return description.*member;
    }
    return "unrecognized error code";
}

} // namespace

extern "C" __attribute__((visibility("default"))) const char *cudaGetErrorName(cudaError_t error)
{
    return describe(error, &Description::name);
}

extern "C" __attribute__((visibility("default"))) const char *cudaGetErrorString(cudaError_t error)
{
    return describe(error, &Description::text);
}

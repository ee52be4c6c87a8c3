/* cuGetErrorName and cuGetErrorString. */
#include "foundation/cuda_api.h"

namespace
{

struct ErrorText {
    CUresult code;
    const char *name;
    const char *text;
};

#define DESCRIBE(code, text) {code, #code, text}

/* The codes that this driver returns, and further ones that its clients pass on. */
const ErrorText descriptions[] = {
    DESCRIBE(CUDA_SUCCESS, "no error"),
    DESCRIBE(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    DESCRIBE(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    DESCRIBE(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    DESCRIBE(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    DESCRIBE(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    DESCRIBE(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    DESCRIBE(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    DESCRIBE(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    DESCRIBE(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    DESCRIBE(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    DESCRIBE(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    DESCRIBE(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    DESCRIBE(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
    DESCRIBE(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    DESCRIBE(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the provided execution affinity is not supported"),
    DESCRIBE(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    DESCRIBE(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    DESCRIBE(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found"),
    DESCRIBE(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object initialization failed"),
    DESCRIBE(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    DESCRIBE(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    DESCRIBE(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    DESCRIBE(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    DESCRIBE(CUDA_ERROR_NOT_READY, "device not ready"),
    DESCRIBE(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    DESCRIBE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    DESCRIBE(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    DESCRIBE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    DESCRIBE(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    DESCRIBE(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
    DESCRIBE(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    DESCRIBE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
    DESCRIBE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    DESCRIBE(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    DESCRIBE(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    DESCRIBE(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    DESCRIBE(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    DESCRIBE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    DESCRIBE(CUDA_ERROR_TIMEOUT, "wait operation timed out"),
    DESCRIBE(CUDA_ERROR_UNKNOWN, "unknown error"),
};

CUresult describe(CUresult code, const char **text, const char *ErrorText::*member)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    for (const ErrorText &description : descriptions) {
        if (description.code == code) {
            *text = description.*member;
            return CUDA_SUCCESS;
        }
    }
    *text = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}

} // namespace

DRIVER_CALL(cuGetErrorName)(CUresult code, const char **name)
{
    return describe(code, name, &ErrorText::name);
}
DRIVER_CALL(cuGetErrorString)(CUresult code, const char **text)
{
    return describe(code, text, &ErrorText::text);
}

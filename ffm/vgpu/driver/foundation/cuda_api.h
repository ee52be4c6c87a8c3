/* CUDA's own driver header with every version of every function, and the macros that declare our functions.
 *
 * DRIVER_CALL(cuFoo)(parameters) { ... } defines the implementation behind the export cuFoo. It is first declared from
 * the prototype in cuda.h, so a definition that differs from it does not compile.
 */
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

/* cudaProfiler.h belongs to a different CUDA package than cuda.h; since CUDA 13 it lacks the first of these. */
extern "C" {
CUresult cuProfilerInitialize();
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
}

/* cudaEGL.h and cudaGL.h need headers of other projects; only the addresses of their functions are used. */
extern "C" {
CUresult cuEGLStreamConsumerDisconnect();
CUresult cuEGLStreamProducerConnect();
CUresult cuEGLStreamProducerDisconnect();
CUresult cuEGLStreamProducerPresentFrame();
CUresult cuEGLStreamProducerReturnFrame();
CUresult cuGLGetDevices_v2();
CUresult cuGraphicsGLRegisterBuffer();
CUresult cuGraphicsGLRegisterImage();
}

/* Declares the implementation behind the export `name`, for calls within the driver, which bypass the export. */
#define DRIVER_IMPLEMENTATION(name)                                                                                    \
    extern "C" __attribute__((visibility("hidden"))) decltype(::name) implementation_##name

#define DRIVER_CALL(name)                                                                                              \
    DRIVER_IMPLEMENTATION(name);                                                                                       \
    CUresult implementation_##name

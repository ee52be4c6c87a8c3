/* Calls for features that this GPU lacks. They exist so that programs that look them up can load. Each returns
 * CUDA_ERROR_NOT_SUPPORTED. */
#include <cstdio>

#include "contexts/context.h"

/* Takes any arguments and ignores them. */
#define REFUSED(name)                                                                                                  \
    extern "C" __attribute__((visibility("hidden"))) CUresult implementation_##name()                                  \
    {                                                                                                                  \
        const CUresult result = vgpu::enter();                                                                         \
        return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : result;                                             \
    }

/* Mipmapped arrays. Programs create them in the middle of their work and rarely check the result, so the refusal is
 * also reported. */
DRIVER_CALL(cuMipmappedArrayCreate)(CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned int)
{
    const CUresult result = vgpu::enter();
    if (result != CUDA_SUCCESS)
        return result;
    std::fprintf(stderr, "vgpu: cuMipmappedArrayCreate is refused: mipmapped arrays are not implemented\n");
    return CUDA_ERROR_NOT_SUPPORTED;
}
REFUSED(cuMipmappedArrayDestroy)
REFUSED(cuMipmappedArrayGetLevel)

/* Memory and semaphores of other interfaces. */
REFUSED(cuDestroyExternalMemory)
REFUSED(cuDestroyExternalSemaphore)
REFUSED(cuExternalMemoryGetMappedBuffer)
REFUSED(cuExternalMemoryGetMappedMipmappedArray)
REFUSED(cuImportExternalMemory)
REFUSED(cuImportExternalSemaphore)
REFUSED(cuSignalExternalSemaphoresAsync)
REFUSED(cuSignalExternalSemaphoresAsync_ptsz)
REFUSED(cuWaitExternalSemaphoresAsync)
REFUSED(cuWaitExternalSemaphoresAsync_ptsz)

/* Several memory operations on a stream in one call, and tensor copies. */
REFUSED(cuStreamBatchMemOp)
REFUSED(cuTensorMapEncodeTiled)

/* OpenGL and EGL images. */
REFUSED(cuEGLStreamConsumerDisconnect)
REFUSED(cuEGLStreamProducerConnect)
REFUSED(cuEGLStreamProducerDisconnect)
REFUSED(cuEGLStreamProducerPresentFrame)
REFUSED(cuEGLStreamProducerReturnFrame)
REFUSED(cuGLGetDevices_v2)
REFUSED(cuGraphicsGLRegisterBuffer)
REFUSED(cuGraphicsGLRegisterImage)
REFUSED(cuGraphicsMapResources)
REFUSED(cuGraphicsMapResources_ptsz)
REFUSED(cuGraphicsResourceGetMappedPointer_v2)
REFUSED(cuGraphicsResourceSetMapFlags_v2)
REFUSED(cuGraphicsSubResourceGetMappedArray)
REFUSED(cuGraphicsUnmapResources)
REFUSED(cuGraphicsUnmapResources_ptsz)
REFUSED(cuGraphicsUnregisterResource)

/* Functions of the first CUDA releases: shared memory configuration, launches and kernel parameters. */
REFUSED(cuCtxGetSharedMemConfig)
REFUSED(cuCtxSetSharedMemConfig)
REFUSED(cuFuncSetSharedMemConfig)
REFUSED(cuFuncSetSharedSize)
REFUSED(cuLaunch)
REFUSED(cuLaunchGrid)
REFUSED(cuLaunchGridAsync)
REFUSED(cuParamSetSize)
REFUSED(cuParamSetTexRef)
REFUSED(cuParamSetf)
REFUSED(cuParamSeti)
REFUSED(cuParamSetv)
REFUSED(cuProfilerInitialize)

/* Texture and surface references. */
REFUSED(cuModuleGetSurfRef)
REFUSED(cuModuleGetTexRef)
REFUSED(cuSurfRefGetArray)
REFUSED(cuSurfRefSetArray)
REFUSED(cuTexRefCreate)
REFUSED(cuTexRefDestroy)
REFUSED(cuTexRefGetAddressMode)
REFUSED(cuTexRefGetAddress_v2)
REFUSED(cuTexRefGetArray)
REFUSED(cuTexRefGetFilterMode)
REFUSED(cuTexRefGetFlags)
REFUSED(cuTexRefGetFormat)
REFUSED(cuTexRefSetAddress2D_v3)
REFUSED(cuTexRefSetAddressMode)
REFUSED(cuTexRefSetAddress_v2)
REFUSED(cuTexRefSetArray)
REFUSED(cuTexRefSetFilterMode)
REFUSED(cuTexRefSetFlags)
REFUSED(cuTexRefSetFormat)

/* Copies between arrays and linear memory, and box copies between devices. */
REFUSED(cuMemcpy3DPeer)
REFUSED(cuMemcpy3DPeerAsync)
REFUSED(cuMemcpyAtoA_v2)
REFUSED(cuMemcpyAtoD_v2)
REFUSED(cuMemcpyAtoH_v2)
REFUSED(cuMemcpyDtoA_v2)
REFUSED(cuMemcpyHtoA_v2)

/* Events shared between processes. */
REFUSED(cuIpcGetEventHandle)
REFUSED(cuIpcOpenEventHandle)

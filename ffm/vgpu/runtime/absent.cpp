/* Calls for features that the virtual GPU's runtime lacks: CUDA arrays, textures, surfaces, memory shared between
 * processes, and graph nodes added by description or during capture. */
#include "runtime_api.h"

using namespace cudart;

#define ABSENT(name, parameters)                                                                                       \
    RUNTIME_CALL name parameters                                                                                       \
    {                                                                                                                  \
        return finish(cudaErrorNotSupported);                                                                          \
    }

/* Returns a plain description and needs no array. Templates in CUDA's headers call it for each texture type. */
extern "C" __attribute__((visibility("default"))) cudaChannelFormatDesc
cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind)
{
    return {x, y, z, w, kind};
}

ABSENT(cudaMallocArray, (cudaArray_t *, const cudaChannelFormatDesc *, size_t, size_t, unsigned int))
ABSENT(cudaMalloc3DArray, (cudaArray_t *, const cudaChannelFormatDesc *, cudaExtent, unsigned int))
ABSENT(cudaFreeArray, (cudaArray_t))
ABSENT(cudaGetChannelDesc, (cudaChannelFormatDesc *, cudaArray_const_t))
ABSENT(cudaMemcpy2DToArray, (cudaArray_t, size_t, size_t, const void *, size_t, size_t, size_t, cudaMemcpyKind))
ABSENT(cudaMemcpy2DToArrayAsync,
       (cudaArray_t, size_t, size_t, const void *, size_t, size_t, size_t, cudaMemcpyKind, cudaStream_t))
ABSENT(cudaMemcpy2DFromArray, (void *, size_t, cudaArray_const_t, size_t, size_t, size_t, size_t, cudaMemcpyKind))
ABSENT(cudaMemcpy2DFromArrayAsync,
       (void *, size_t, cudaArray_const_t, size_t, size_t, size_t, size_t, cudaMemcpyKind, cudaStream_t))
ABSENT(cudaCreateTextureObject,
       (cudaTextureObject_t *, const cudaResourceDesc *, const cudaTextureDesc *, const cudaResourceViewDesc *))
ABSENT(cudaDestroyTextureObject, (cudaTextureObject_t))
ABSENT(cudaGetTextureObjectResourceDesc, (cudaResourceDesc *, cudaTextureObject_t))
ABSENT(cudaGetTextureObjectTextureDesc, (cudaTextureDesc *, cudaTextureObject_t))
ABSENT(cudaCreateSurfaceObject, (cudaSurfaceObject_t *, const cudaResourceDesc *))
ABSENT(cudaDestroySurfaceObject, (cudaSurfaceObject_t))
ABSENT(cudaIpcGetMemHandle, (cudaIpcMemHandle_t *, void *))
ABSENT(cudaIpcOpenMemHandle, (void **, cudaIpcMemHandle_t, unsigned int))
ABSENT(cudaIpcCloseMemHandle, (void *))
ABSENT(cudaIpcGetEventHandle, (cudaIpcEventHandle_t *, cudaEvent_t))
ABSENT(cudaIpcOpenEventHandle, (cudaEvent_t *, cudaIpcEventHandle_t))
ABSENT(cudaGraphDebugDotPrint, (cudaGraph_t, const char *, unsigned int))
ABSENT(cudaGraphAddNode, (cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, const cudaGraphEdgeData *, size_t,
                          cudaGraphNodeParams *))
ABSENT(cudaGraphConditionalHandleCreate, (cudaGraphConditionalHandle *, cudaGraph_t, unsigned int, unsigned int))
ABSENT(cudaMemPoolSetAccess, (cudaMemPool_t, const cudaMemAccessDesc *, size_t))
ABSENT(cudaStreamBeginCaptureToGraph,
       (cudaStream_t, cudaGraph_t, const cudaGraphNode_t *, const cudaGraphEdgeData *, size_t, cudaStreamCaptureMode))
ABSENT(cudaStreamUpdateCaptureDependencies,
       (cudaStream_t, cudaGraphNode_t *, const cudaGraphEdgeData *, size_t, unsigned int))

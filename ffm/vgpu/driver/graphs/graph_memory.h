/* Memory that nodes of graphs allocate and free.
 *
 * Its address is reserved when the node is added, and stays reserved until neither a graph nor the program needs it.
 * The device memory behind it, in blocks, comes with a launch, stays with the graph, and goes when the program trims.
 * The two are only counted separately: this machine provides pages on first use. */
#pragma once

#include "graph.h"

namespace vgpu
{

/* The device memory behind an allocation. Allocations that follow each other share it. */
struct GraphBlock {
    std::size_t size;
    std::uint64_t stream;               /* in which it was last freed */
    OperationReference freed;           /* null: at once */
    bool allocated = false;             /* the program may use it */
    std::set<const void *> executables; /* that have used it */
};

enum class FreedBy { nobody, own_graph, another_graph };

struct GraphAllocation {
    ~GraphAllocation();

    CUDA_MEM_ALLOC_NODE_PARAMS given = {};
    CUdevice device = 0;
    std::uint64_t id = 0;                  /* among all allocations */
    FreedBy freed_by = FreedBy::nobody;    /* by a node */
    std::shared_ptr<GraphBlock> block{};   /* null: it is not allocated at present */
    std::shared_ptr<GraphAllocation> kept; /* itself, while the program must free it */
};

/* The work of nodes that are about to be added to the graph; the former gives `parameters` the address.
 *
 * Errors: CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult allocate_work(CUDA_MEM_ALLOC_NODE_PARAMS &parameters, NodeWork &work);
CUresult free_work(const Graph &graph, CUdeviceptr address, NodeWork &work);

/* As cuMemAllocAsync and cuMemFreeAsync in a stream that is being captured. */
CUresult capture_allocation(Stream &stream, CUdeviceptr *address, std::size_t size);
CUresult capture_free(Stream &stream, CUdeviceptr address);

/* What a launch allocates and frees, in the order of its nodes; `end` is its last operation. Changes nothing on errors:
 * CUDA_ERROR_INVALID_VALUE if it allocates what is allocated, or frees what is not. */
CUresult take_graph_memory(const ExecutableGraph &executable, const Stream &stream, const OperationReference &end);

/* The program frees such memory; `freed` is null if nothing uses it any more. CUDA_ERROR_INVALID_VALUE if it is not
 * allocated, or the graph itself frees it. */
CUresult free_graph_memory(CUdeviceptr address, std::uint64_t stream, const OperationReference &freed);

/* The executable graph is destroyed. */
void leave_graph_memory(const ExecutableGraph &executable);

} // namespace vgpu

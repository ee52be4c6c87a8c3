/* What nodes of graphs do, derived from the program's descriptions. */
#pragma once

#include "graph.h"

namespace vgpu
{

/* Each checks the description, and on an error leaves `work` unchanged. */
CUresult copy_work(const CUDA_MEMCPY3D *box, NodeWork &work);
CUresult set_work(const CUDA_MEMSET_NODE_PARAMS *parameters, NodeWork &work);
CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v1 *parameters, NodeWork &work);
CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2 *parameters, NodeWork &work);

/* Another graph, of which the node has a copy. CUDA_ERROR_NOT_SUPPORTED if it has memory. */
CUresult child_work(const Graph &parent, CUgraph child, NodeWork &work);

} // namespace vgpu

/* Conditions of graphs: values that kernels set (cudaGraphSetConditional), and that decide what a conditional node
 * executes. */
#pragma once

#include "graph.h"

namespace vgpu
{

/* Its handle is the address of its value, which is in the device's memory. */
struct Condition {
    Condition(CUdevice device, std::uintptr_t address);
    ~Condition();
    Condition(const Condition &) = delete;
    Condition &operator=(const Condition &) = delete;

    std::uint32_t value() const;
    void set(std::uint32_t value);

    const CUdevice device;
    const std::uintptr_t address;
    std::uint32_t at_launch = 0;
    bool assigned = false; /* `at_launch` is its value whenever a graph begins */
    bool used = false;     /* by a node: a handle belongs to one */
};

std::shared_ptr<Condition> find_condition(CUgraphConditionalHandle handle);

/* The work of such a node, with bodies that the program can fill. Errors: CUDA_ERROR_INVALID_VALUE. */
CUresult conditional_work(const CUDA_CONDITIONAL_NODE_PARAMS &parameters, NodeWork &work);

/* Whether graphs that are nested in the node's bodies have only nodes that CUDA allows there. */
bool bodies_are_allowed(const NodeWork &work);

/* What the node executes with this value; null if nothing. */
std::shared_ptr<Graph> chosen_body(const ConditionalNode &node, std::uint32_t value);

} // namespace vgpu

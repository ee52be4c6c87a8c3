/* cuModuleGetGlobal and cuLibraryGetGlobal: variables of device code, which are in each device's memory. */
#include <cstring>

#include "context.h"
#include "memory.h"
#include "module.h"

using namespace vgpu;

namespace
{

CUresult make(CUdevice device, Variable &variable)
{
    Allocation allocation;
    CUresult result = DeviceMemory::allocate(device, variable.size, allocation.address);
    if (result != CUDA_SUCCESS)
        return result;
    std::memset(reinterpret_cast<void *>(allocation.address), 0, variable.size);
    allocation.size = variable.size;
    allocation.device = device;
    allocation.kind = MemoryKind::device;
    allocation.gpu_view = reinterpret_cast<char *>(allocation.address);
    add_allocation(allocation); /* without a context: it lives as long as the image is loaded */
    variable.address = allocation.address;
    return CUDA_SUCCESS;
}

template <typename Address, typename Size>
CUresult get_global(Address *address, Size *size, const void *handle, const char *name)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!name || (!address && !size))
        return CUDA_ERROR_INVALID_VALUE;
    Variable variable;
    result = find_variable(handle, context->device, name, variable);
    if (result == CUDA_SUCCESS && address)
        *address = static_cast<Address>(variable.address);
    if (result == CUDA_SUCCESS && size)
        *size = static_cast<Size>(variable.size);
    return result;
}

} // namespace

CUresult vgpu::variable_of(Module &module, CUdevice device, const char *name, Variable &found)
{
    if (!module.compiled)
        return CUDA_ERROR_NOT_FOUND; /* images of host functions have no variables */
    CUresult placed = place_variables(module, device);
    if (placed != CUDA_SUCCESS)
        return placed;
    for (const CodeVariable &declared : module.compiled->variables()) {
        if (declared.name != name)
            continue;
        Variable &variable = module.variables[{device, name}];
        variable.size = declared.size;
        CUresult result = variable.address ? CUDA_SUCCESS : make(device, variable);
        found = variable;
        return result;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult vgpu::place_variables(Module &module, CUdevice device)
{
    std::vector<std::uint64_t> &places = module.places[device];
    if (!module.compiled->program() || !places.empty())
        return CUDA_SUCCESS;
    std::map<std::string, std::uint64_t> addresses;
    for (const CodeVariable &declared : module.compiled->variables()) {
        Variable &variable = module.variables[{device, declared.name}];
        variable.size = declared.size;
        CUresult result = variable.address ? CUDA_SUCCESS : make(device, variable);
        if (result != CUDA_SUCCESS)
            return result;
        addresses[declared.name] = variable.address;
    }
    try {
        places = module.compiled->program()->place(addresses);
    } catch (const ptx::Error &error) {
        std::fprintf(stderr, "vgpu: %s\n", error.what());
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    places.push_back(0); /* never empty again */
    return CUDA_SUCCESS;
}

void vgpu::release_variables(Module &module)
{
    for (const auto &variable : module.variables) {
        Allocation removed;
        if (remove_allocation(variable.second.address, MemoryKind::device, removed))
            DeviceMemory::release(removed.device, removed.address, removed.size);
    }
}

DRIVER_CALL(cuModuleGetGlobal)(CUdeviceptr_v1 *address, unsigned int *size, CUmodule module, const char *name)
{
    return get_global(address, size, module, name);
}
DRIVER_CALL(cuModuleGetGlobal_v2)(CUdeviceptr *address, size_t *size, CUmodule module, const char *name)
{
    return get_global(address, size, module, name);
}
DRIVER_CALL(cuLibraryGetGlobal)(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
    return get_global(address, size, library, name);
}

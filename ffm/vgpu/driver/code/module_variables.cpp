/* cuModuleGetGlobal, cuLibraryGetGlobal and cuLibraryGetManaged. Variables of device code lie in each device's
 * memory, or in managed memory. */
#include <cstring>

#include "contexts/context.h"
#include "memory/memory.h"
#include "module.h"

using namespace vgpu;

namespace
{

CUresult make(CUdevice device, bool managed, Variable &variable)
{
    Allocation allocation;
    allocation.size = variable.size;
    allocation.device = device;
    allocation.kind = managed ? MemoryKind::managed : MemoryKind::device;
    if (managed)
        allocation.flags = CU_MEM_ATTACH_GLOBAL;
    CUresult result = managed ? map_twice(variable.size, allocation.address, allocation.gpu_view)
                              : DeviceMemory::allocate(device, variable.size, allocation.address);
    if (result != CUDA_SUCCESS)
        return result;
    if (!managed) {
        allocation.gpu_view = reinterpret_cast<char *>(allocation.address);
        std::memset(allocation.gpu_view, 0, variable.size);
    }
    add_allocation(allocation); /* owned by no context: it lives as long as the image is loaded */
    variable.address = allocation.address;
    return CUDA_SUCCESS;
}

/* The device's copy of a variable, created when it is first asked for. */
CUresult find_or_make(Module &module, CUdevice device, const CodeVariable &declared, Variable &found)
{
    Variable &variable = module.variables[{declared.managed ? every_device : device, declared.name}];
    variable.size = declared.size;
    CUresult result = variable.address ? CUDA_SUCCESS : make(device, declared.managed, variable);
    found = variable;
    return result;
}

template <typename Address, typename Size>
CUresult answer(Address *address, Size *size, const void *handle, CUdevice device, const char *name)
{
    if (!name || (!address && !size))
        return CUDA_ERROR_INVALID_VALUE;
    Variable variable;
    CUresult result = find_variable(handle, device, name, variable);
    if (result == CUDA_SUCCESS && address)
        *address = static_cast<Address>(variable.address);
    if (result == CUDA_SUCCESS && size)
        *size = static_cast<Size>(variable.size);
    return result;
}

template <typename Address, typename Size>
CUresult get_global(Address *address, Size *size, const void *handle, const char *name)
{
    Context *context;
    CUresult result = enter(context);
    return result == CUDA_SUCCESS ? answer(address, size, handle, context->device, name) : result;
}

} // namespace

CUresult vgpu::variable_of(Module &module, CUdevice device, const char *name, Variable &found)
{
    if (!module.compiled)
        return CUDA_ERROR_NOT_FOUND; /* images of host functions have no variables */
    CUresult placed = place_variables(module, device);
    if (placed != CUDA_SUCCESS)
        return placed;
    for (const CodeVariable &declared : module.compiled->variables())
        if (declared.name == name)
            return find_or_make(module, device, declared, found);
    return CUDA_ERROR_NOT_FOUND;
}

CUresult vgpu::place_variables(Module &module, CUdevice device)
{
    std::vector<std::uint64_t> &places = module.places[device];
    if (!module.compiled->program() || !places.empty())
        return CUDA_SUCCESS;
    std::map<std::string, std::uint64_t> addresses;
    for (const CodeVariable &declared : module.compiled->variables()) {
        Variable variable;
        CUresult result = find_or_make(module, device, declared, variable);
        if (result != CUDA_SUCCESS)
            return result;
        addresses[declared.name] = variable.address;
    }
    try {
        places = module.compiled->program()->place(addresses, module.places.size() == 1);
    } catch (const ptx::Error &error) {
        std::fprintf(stderr, "vgpu: %s\n", error.what());
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    places.push_back(0); /* marks the places as filled, even without variables */
    return CUDA_SUCCESS;
}

void vgpu::release_variables(Module &module)
{
    for (const auto &variable : module.variables) {
        Allocation removed;
        if (remove_allocation(variable.second.address, MemoryKind::device, removed))
            DeviceMemory::release(removed.device, removed.address, removed.size);
        else if (remove_allocation(variable.second.address, MemoryKind::managed, removed))
            unmap_twice(removed);
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

/* Needs no context: NVIDIA's runtime calls it before it creates one. */
DRIVER_CALL(cuLibraryGetManaged)(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
    CUresult result = enter();
    const Context *context = current_context();
    return result == CUDA_SUCCESS ? answer(address, size, library, context ? context->device : 0, name) : result;
}

/* Modules, libraries, kernels and functions (cuModule…, cuLibrary…, cuKernel…, cuFunc…). An image is a table of host
 * functions (`kernel_image.h`) or device code. */
#include "module.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "compiler_logs.h"
#include "contexts/context.h"
#include "foundation/configuration.h"
#include "foundation/device_limits.h"

using namespace vgpu;

namespace
{

struct Loaded {
    std::mutex mutex;
    std::unordered_set<const void *> modules;
    std::unordered_set<const void *> kernels;
};

Loaded &loaded()
{
    static Loaded *instance = new Loaded;
    return *instance;
}

/* nvcc links only machine code, so the PTX of all parts is joined here. Empty if nothing was linked, or if a part
 * has no PTX. */
std::string link(const KernelWrapper &wrapper)
{
    std::string linked, text;
    if (wrapper.version != KERNEL_WRAPPER_LINKED || !wrapper.parts || !runs_portable_code(configuration()))
        return linked;
    for (void *const *part = static_cast<void *const *>(wrapper.parts); *part; ++part) {
        if (portable_code_of(*part, text) != CUDA_SUCCESS)
            return std::string();
        linked += text + "\n";
    }
    return linked;
}

bool is_own(const void *image)
{
    constexpr unsigned char header[] = KERNEL_IMAGE_HEADER;
    if (std::strncmp(static_cast<const char *>(image), reinterpret_cast<const char *>(header), 4) != 0)
        return false;
    std::uint32_t magic;
    std::memcpy(&magic, static_cast<const char *>(image) + offsetof(KernelImage, magic), sizeof magic);
    return magic == KERNEL_IMAGE_MAGIC;
}

/* Loads one of our own images, or device code. */
CUresult load(Module **result, const void *image)
{
    if (!result || !image)
        return CUDA_ERROR_INVALID_VALUE;
    std::string linked;
    KernelWrapper wrapper;
    std::memcpy(&wrapper.magic, image, sizeof wrapper.magic);
    if (wrapper.magic == KERNEL_WRAPPER_MAGIC) {
        std::memcpy(&wrapper, image, sizeof wrapper);
        linked = link(wrapper);
        image = linked.empty() ? wrapper.image : linked.c_str();
    }
    std::unique_ptr<CompiledCode> compiled;
    const KernelImage *known = static_cast<const KernelImage *>(image);
    if (!is_own(image)) {
        CUresult made = compile(image, compiled);
        if (made != CUDA_SUCCESS)
            return made;
        known = compiled->image();
    } else if (known->version != KERNEL_IMAGE_VERSION) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    Module *module = new Module{known, std::move(compiled), {}, {}, {}};
    std::lock_guard<std::mutex> lock(loaded().mutex);
    loaded().modules.insert(module);
    *result = module;
    return CUDA_SUCCESS;
}

CUresult unload(const void *handle)
{
    std::lock_guard<std::mutex> lock(loaded().mutex);
    if (loaded().modules.erase(handle) == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    std::unique_ptr<Module> module(static_cast<Module *>(const_cast<void *>(handle)));
    for (const auto &kernel : module->kernels)
        loaded().kernels.erase(kernel.second.get());
    release_variables(*module);
    return CUDA_SUCCESS;
}

bool is_module(const void *handle)
{
    std::lock_guard<std::mutex> lock(loaded().mutex);
    return loaded().modules.count(handle) != 0;
}

CUresult get_kernel(Kernel **result, void *handle, const char *name)
{
    if (!result || !name)
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> lock(loaded().mutex);
    if (loaded().modules.count(handle) == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    Module *module = static_cast<Module *>(handle);
    for (const KernelEntry *entry = module->image->first; entry; entry = entry->next) {
        if (std::strcmp(entry->name, name) != 0)
            continue;
        bool computes = entry->run || (module->compiled && module->compiled->program());
        if (!computes && !passes_other_code(configuration()))
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
        std::unique_ptr<Kernel> &kernel = module->kernels[name];
        if (!kernel) {
            kernel = std::make_unique<Kernel>();
            kernel->module = module;
            kernel->entry = entry;
            loaded().kernels.insert(kernel.get());
        }
        *result = kernel.get();
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult get_attribute(int *value, CUfunction_attribute attribute, const void *handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    const Kernel *kernel = find_kernel(handle);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    auto set = kernel->attributes.find(attribute);
    if (set != kernel->attributes.end()) {
        *value = set->second;
        return CUDA_SUCCESS;
    }
    const ptx::KernelProperties properties = properties_of(*kernel);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = static_cast<int>(properties.maximum_threads);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_cast<int>(properties.shared_size);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = static_cast<int>(properties.local_size);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = static_cast<int>(properties.constant_size);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: /* templates choose the launch's shape by it */
        *value = kernel->module->compiled ? kernel->module->compiled->architecture() : 90;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = 90;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = std::max(0, static_cast<int>(shared_memory_unasked) - static_cast<int>(properties.shared_size));
        return CUDA_SUCCESS;
    default:
        if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
            return CUDA_ERROR_INVALID_VALUE;
        *value = 0;
        return CUDA_SUCCESS;
    }
}

CUresult set_attribute(void *handle, CUfunction_attribute attribute, int value)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    Kernel *kernel = find_kernel(handle);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
        attribute != CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT &&
        attribute != CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
        (value < 0 || properties_of(*kernel).shared_size + static_cast<unsigned>(value) > shared_memory_per_block))
        return CUDA_ERROR_INVALID_VALUE;
    kernel->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

CUresult get_name(const char **name, const void *handle)
{
    const Kernel *kernel = find_kernel(handle);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = kernel->entry->name;
    return CUDA_SUCCESS;
}

CUresult get_parameter(const void *handle, size_t index, size_t *offset, size_t *size)
{
    const Kernel *kernel = find_kernel(handle);
    if (!kernel || !offset || index >= kernel->entry->parameter_count)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = kernel->entry->parameters[index].offset;
    if (size)
        *size = kernel->entry->parameters[index].size;
    return CUDA_SUCCESS;
}

/* Waits for all earlier work of the context before loading, as NVIDIA's drivers do on real GPUs. */
CUresult load_module(CUmodule *module, const void *image)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    wait_for_context(*context);
    context->printed.show();
    return load(reinterpret_cast<Module **>(module), image);
}

} // namespace

Kernel *vgpu::find_kernel(const void *handle)
{
    std::lock_guard<std::mutex> lock(loaded().mutex);
    return loaded().kernels.count(handle) ? static_cast<Kernel *>(const_cast<void *>(handle)) : nullptr;
}

ptx::KernelProperties vgpu::properties_of(const Kernel &kernel)
{
    const CompiledCode *compiled = kernel.module->compiled.get();
    return compiled && compiled->program() ? compiled->program()->properties(kernel.entry->name)
                                           : ptx::KernelProperties{};
}

CUresult vgpu::find_code(Kernel &kernel, const ptx::Code *&code)
{
    CompiledCode *compiled = kernel.module->compiled.get();
    code = nullptr;
    if (!compiled || !compiled->program())
        return CUDA_SUCCESS;
    try {
        code = &compiled->program()->code(kernel.entry->name);
    } catch (const ptx::Error &error) {
        std::fprintf(stderr, "vgpu: kernel %s cannot run: %s\n", kernel.entry->name, error.what());
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult vgpu::find_variables(Module &module, CUdevice device, const std::uint64_t *&addresses)
{
    std::lock_guard<std::mutex> lock(loaded().mutex);
    CUresult result = place_variables(module, device);
    addresses = module.places[device].data();
    return result;
}

CUresult vgpu::find_variable(const void *handle, CUdevice device, const char *name, Variable &found)
{
    std::lock_guard<std::mutex> lock(loaded().mutex);
    if (loaded().modules.count(handle) == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    return variable_of(*static_cast<Module *>(const_cast<void *>(handle)), device, name, found);
}

DRIVER_CALL(cuModuleLoadData)(CUmodule *module, const void *image)
{
    return load_module(module, image);
}
DRIVER_CALL(cuModuleLoadDataEx)(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                                void **values)
{
    empty_logs(count, options, values);
    return load_module(module, image);
}
DRIVER_CALL(cuModuleLoadFatBinary)(CUmodule *module, const void *image)
{
    return load_module(module, image);
}

/* Waits for all earlier work of the context: a kernel of the module may be running. */
DRIVER_CALL(cuModuleUnload)(CUmodule module)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_module(module))
        return CUDA_ERROR_INVALID_HANDLE;
    wait_for_context(*context);
    context->printed.show();
    return unload(module);
}

DRIVER_CALL(cuModuleGetFunction)(CUfunction *function, CUmodule module, const char *name)
{
    Context *context;
    CUresult result = enter(context);
    return result != CUDA_SUCCESS ? result : get_kernel(reinterpret_cast<Kernel **>(function), module, name);
}

DRIVER_CALL(cuModuleGetLoadingMode)(CUmoduleLoadingMode *mode)
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuLibraryLoadData)(CUlibrary *library, const void *image, CUjit_option *options, void **values,
                               unsigned int count, CUlibraryOption *, void **, unsigned int)
{
    empty_logs(count, options, values);
    CUresult result = enter();
    return result != CUDA_SUCCESS ? result : load(reinterpret_cast<Module **>(library), image);
}

/* Waits as cuModuleUnload does. A thread without a context has no work to wait for. */
DRIVER_CALL(cuLibraryUnload)(CUlibrary library)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_module(library))
        return CUDA_ERROR_INVALID_HANDLE;
    if (Context *context = current_context()) {
        wait_for_context(*context);
        context->printed.show();
    }
    return unload(library);
}

DRIVER_CALL(cuLibraryGetKernel)(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult result = enter();
    return result != CUDA_SUCCESS ? result : get_kernel(reinterpret_cast<Kernel **>(kernel), library, name);
}

DRIVER_CALL(cuLibraryGetModule)(CUmodule *module, CUlibrary library)
{
    if (!is_module(library))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    *module = reinterpret_cast<CUmodule>(library);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuKernelGetFunction)(CUfunction *function, CUkernel kernel)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    if (!find_kernel(kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuFuncGetModule)(CUmodule *module, CUfunction function)
{
    const Kernel *kernel = find_kernel(function);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    *module = reinterpret_cast<CUmodule>(kernel->module);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuKernelGetLibrary)(CUlibrary *library, CUkernel handle)
{
    const Kernel *kernel = find_kernel(handle);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!library)
        return CUDA_ERROR_INVALID_VALUE;
    *library = reinterpret_cast<CUlibrary>(kernel->module);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuFuncGetAttribute)(int *value, CUfunction_attribute attribute, CUfunction function)
{
    return get_attribute(value, attribute, function);
}
DRIVER_CALL(cuFuncSetAttribute)(CUfunction function, CUfunction_attribute attribute, int value)
{
    return set_attribute(function, attribute, value);
}
/* Only cuLaunch uses the shape, and this driver does not have it. PyCUDA sets the shape before each cuLaunchKernel. */
DRIVER_CALL(cuFuncSetBlockShape)(CUfunction function, int x, int y, int z)
{
    if (!find_kernel(function))
        return CUDA_ERROR_INVALID_HANDLE;
    return x > 0 && y > 0 && z > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_CALL(cuFuncSetCacheConfig)(CUfunction function, CUfunc_cache)
{
    return find_kernel(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
DRIVER_CALL(cuKernelSetCacheConfig)(CUkernel kernel, CUfunc_cache, CUdevice)
{
    return find_kernel(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
DRIVER_CALL(cuFuncGetName)(const char **name, CUfunction function)
{
    return get_name(name, function);
}
DRIVER_CALL(cuKernelGetName)(const char **name, CUkernel kernel)
{
    return get_name(name, kernel);
}
DRIVER_CALL(cuFuncGetParamInfo)(CUfunction function, size_t index, size_t *offset, size_t *size)
{
    return get_parameter(function, index, offset, size);
}
DRIVER_CALL(cuKernelGetParamInfo)(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
    return get_parameter(kernel, index, offset, size);
}
DRIVER_CALL(cuKernelGetAttribute)(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice)
{
    return get_attribute(value, attribute, kernel);
}
DRIVER_CALL(cuKernelSetAttribute)(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice)
{
    return set_attribute(kernel, attribute, value);
}

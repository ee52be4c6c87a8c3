/* Linking device code: the PTX of all inputs becomes one module, which is compiled when it is loaded. */
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include "compiler_logs.h"
#include "contexts/context.h"
#include "device_code.h"

using namespace vgpu;

namespace
{

struct Link {
    std::string text;
};

struct Links {
    std::mutex mutex;
    std::map<CUlinkState, std::unique_ptr<Link>> all;
};

Links &links()
{
    static Links *instance = new Links;
    return *instance;
}

CUresult create(unsigned int count, CUjit_option *options, void **values, CUlinkState *state)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!state || (count > 0 && (!options || !values)))
        return CUDA_ERROR_INVALID_VALUE;
    empty_logs(count, options, values);
    auto made = std::make_unique<Link>();
    *state = reinterpret_cast<CUlinkState>(made.get());
    std::lock_guard<std::mutex> lock(links().mutex);
    links().all[*state] = std::move(made);
    return CUDA_SUCCESS;
}

/* `data` ends with a zero byte. NVIDIA's libraries are accepted but not linked: a kernel that calls one of their
 * functions fails when it is launched. */
CUresult add(CUlinkState state, CUjitInputType type, const void *data, std::size_t size)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!data || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_JIT_INPUT_LIBRARY)
        return CUDA_SUCCESS;
    if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    std::string text;
    result = type == CU_JIT_INPUT_PTX ? CUDA_SUCCESS : portable_code_of(data, text);
    if (type == CU_JIT_INPUT_PTX)
        text.assign(static_cast<const char *>(data), strnlen(static_cast<const char *>(data), size));
    std::lock_guard<std::mutex> lock(links().mutex);
    auto found = links().all.find(state);
    if (found == links().all.end())
        return CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        found->second->text += text + "\n";
    return result;
}

CUresult add_file(CUlinkState state, CUjitInputType type, const char *path)
{
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    return add(state, type, content.str().c_str(), content.str().size());
}

} // namespace

DRIVER_CALL(cuLinkCreate)(unsigned int count, CUjit_option *options, void **values, CUlinkState *state)
{
    return create(count, options, values, state);
}
DRIVER_CALL(cuLinkCreate_v2)(unsigned int count, CUjit_option *options, void **values, CUlinkState *state)
{
    return create(count, options, values, state);
}
DRIVER_CALL(cuLinkAddData)(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *, unsigned int,
                           CUjit_option *, void **)
{
    return add(state, type, data, size);
}
DRIVER_CALL(cuLinkAddData_v2)(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *,
                              unsigned int, CUjit_option *, void **)
{
    return add(state, type, data, size);
}
DRIVER_CALL(cuLinkAddFile)(CUlinkState state, CUjitInputType type, const char *path, unsigned int, CUjit_option *,
                           void **)
{
    return add_file(state, type, path);
}
DRIVER_CALL(cuLinkAddFile_v2)(CUlinkState state, CUjitInputType type, const char *path, unsigned int, CUjit_option *,
                              void **)
{
    return add_file(state, type, path);
}

/* The link owns the result. It is PTX, and loads just as machine code does. */
DRIVER_CALL(cuLinkComplete)(CUlinkState state, void **image, size_t *size)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> lock(links().mutex);
    auto found = links().all.find(state);
    if (found == links().all.end())
        return CUDA_ERROR_INVALID_HANDLE;
    std::string &text = found->second->text;
    if (text.empty())
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *image = text.data();
    if (size)
        *size = text.size() + 1;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuLinkDestroy)(CUlinkState state)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    std::lock_guard<std::mutex> lock(links().mutex);
    return links().all.erase(state) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

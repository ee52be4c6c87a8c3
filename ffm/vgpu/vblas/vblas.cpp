/* libvblas, the virtual GPU's BLAS library. */
#include <new>
#include <type_traits>

#include "../include/vblas_kernels.h"
#include "driver.h"

#pragma GCC visibility push(default)
#include "../include/vblas.h"
#pragma GCC visibility pop

struct vblasContext {
    CUstream stream;
    CUdeviceptr workspace; /* VBLAS_PARTS partial results, then the total */
    CUkernel sum_parts;
    CUkernel add_parts;
};

namespace
{

using portable_kernel::run_grid;

constexpr auto sum_parameters = portable_kernel::layout<const float *, int, int, float *>();
constexpr auto add_parameters = portable_kernel::layout<const float *, float *>();
const KernelEntry add_entry = {"vblas_add_parts", &run_grid<&vblas_add_parts, const float *, float *>,
                               add_parameters.data(), 2, nullptr};
const KernelEntry sum_entry = {"vblas_sum_parts", &run_grid<&vblas_sum_parts, const float *, int, int, float *>,
                               sum_parameters.data(), 4, &add_entry};
const KernelImage image = {KERNEL_IMAGE_HEADER, KERNEL_IMAGE_MAGIC, KERNEL_IMAGE_VERSION, &sum_entry};

constexpr std::uint32_t one[3] = {1, 1, 1};
constexpr std::uint32_t part_block[3] = {128, 1, 1};
constexpr std::uint32_t part_grid[3] = {VBLAS_PARTS / 128, 1, 1};

/* Makes the primary context current if the thread has no context. */
bool make_current(const vblas::Driver &driver)
{
    CUcontext context = nullptr;
    if (driver.get_current_context(&context) != CUDA_SUCCESS)
        return false;
    return context || (driver.retain_primary_context(&context, 0) == CUDA_SUCCESS &&
                       driver.set_current_context(context) == CUDA_SUCCESS);
}

bool load_kernels(const vblas::Driver &driver, vblasContext &handle)
{
    CUlibrary library;
    return driver.load_library(&library, &image, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS &&
           driver.get_kernel(&handle.sum_parts, library, "vblas_sum_parts") == CUDA_SUCCESS &&
           driver.get_kernel(&handle.add_parts, library, "vblas_add_parts") == CUDA_SUCCESS;
}

} // namespace

vblasStatus_t vblasCreate(vblasHandle_t *handle)
{
    if (!handle)
        return VBLAS_STATUS_INVALID_VALUE;
    const vblas::Driver *driver = vblas::driver();
    if (!driver || !make_current(*driver))
        return VBLAS_STATUS_NOT_INITIALIZED;
    vblasContext *created = new (std::nothrow) vblasContext{};
    if (!created)
        return VBLAS_STATUS_ALLOC_FAILED;
    if (!load_kernels(*driver, *created) ||
        driver->allocate(&created->workspace, (VBLAS_PARTS + 1) * sizeof(float)) != CUDA_SUCCESS) {
        delete created;
        return VBLAS_STATUS_ALLOC_FAILED;
    }
    *handle = created;
    return VBLAS_STATUS_SUCCESS;
}

vblasStatus_t vblasDestroy(vblasHandle_t handle)
{
    if (!handle || !vblas::driver())
        return VBLAS_STATUS_NOT_INITIALIZED;
    CUresult freed = vblas::driver()->free(handle->workspace);
    delete handle;
    return freed == CUDA_SUCCESS ? VBLAS_STATUS_SUCCESS : VBLAS_STATUS_EXECUTION_FAILED;
}

vblasStatus_t vblasSetStream(vblasHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return VBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return VBLAS_STATUS_SUCCESS;
}

vblasStatus_t vblasSasum(vblasHandle_t handle, int n, const float *x, int increment, float *result)
{
    if (!handle || !vblas::driver())
        return VBLAS_STATUS_NOT_INITIALIZED;
    if (!result || increment <= 0 || (n > 0 && !x))
        return VBLAS_STATUS_INVALID_VALUE;
    *result = 0;
    if (n <= 0)
        return VBLAS_STATUS_SUCCESS;
    const vgpu::PrivateTable &table = *vblas::driver()->table;
    float *partial = reinterpret_cast<float *>(handle->workspace);
    float *total = partial + VBLAS_PARTS;
    void *sum_arguments[] = {&x, &n, &increment, &partial};
    void *add_arguments[] = {&partial, &total};
    if (table.launch(handle->sum_parts, part_grid, part_block, handle->stream, sum_arguments) != CUDA_SUCCESS ||
        table.launch(handle->add_parts, one, one, handle->stream, add_arguments) != CUDA_SUCCESS ||
        table.fetch(result, reinterpret_cast<CUdeviceptr>(total), sizeof *result, handle->stream) != CUDA_SUCCESS)
        return VBLAS_STATUS_EXECUTION_FAILED;
    return VBLAS_STATUS_SUCCESS;
}

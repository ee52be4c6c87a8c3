/* The part of cuBLAS that matrix products of PyTorch need, for the virtual GPU: each is one kernel that takes its time
 * and changes nothing (`device.code = pass`). Prototypes: cuBLAS documentation, sections 2.4 and 2.7. */
#include <cuda_runtime_api.h>
#include <new>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace
{

enum Status { success = 0, not_initialized = 1, alloc_failed = 3, execution_failed = 13 };

/* 256 steps of a row's product are a thread's, so that the kernel's time can be given for each thread. */
constexpr unsigned steps_per_thread = 256, threads = 256;
const char code[] = ".version 8.0\n"
                    ".target sm_80\n"
                    ".address_size 64\n"
                    ".visible .entry blas_gemm(.param .u64 left, .param .u64 right, .param .u64 result,\n"
                    "    .param .u32 rows, .param .u32 columns, .param .u32 inner)\n"
                    "{ ret; }\n";

struct Handle {
    cudaStream_t stream;
    cudaLibrary_t library;
    cudaKernel_t gemm;
    int math_mode, pointer_mode;
};

unsigned parts(unsigned long long whole, unsigned part)
{
    return static_cast<unsigned>((whole + part - 1) / part);
}

int multiply(const void *handle, int rows, int columns, int inner, const void *left, const void *right, void *result,
             unsigned batches)
{
    const Handle *blas = static_cast<const Handle *>(handle);
    if (!blas)
        return not_initialized;
    if (rows <= 0 || columns <= 0 || batches == 0)
        return success;
    void *arguments[] = {&left, &right, &result, &rows, &columns, &inner};
    dim3 grid(parts(static_cast<unsigned long long>(rows) * static_cast<unsigned>(columns), threads),
              parts(static_cast<unsigned>(inner), steps_per_thread), batches);
    return cudaLaunchKernel(reinterpret_cast<const void *>(blas->gemm), grid, dim3(threads), arguments, 0,
                            blas->stream) == cudaSuccess
               ? success
               : execution_failed;
}

} // namespace

EXPORT int cublasCreate_v2(void **handle)
{
    Handle *created = new (std::nothrow) Handle{};
    if (!created)
        return alloc_failed;
    if (cudaLibraryLoadData(&created->library, code, nullptr, nullptr, 0, nullptr, nullptr, 0) != cudaSuccess ||
        cudaLibraryGetKernel(&created->gemm, created->library, "blas_gemm") != cudaSuccess) {
        delete created;
        return not_initialized;
    }
    *handle = created;
    return success;
}

EXPORT int cublasDestroy_v2(void *handle)
{
    Handle *blas = static_cast<Handle *>(handle);
    if (!blas)
        return not_initialized;
    cudaLibraryUnload(blas->library);
    delete blas;
    return success;
}

EXPORT int cublasSetStream_v2(void *handle, cudaStream_t stream)
{
    static_cast<Handle *>(handle)->stream = stream;
    return success;
}
EXPORT int cublasSetWorkspace_v2(void *, void *, size_t)
{
    return success;
}
EXPORT int cublasSetMathMode(void *handle, int mode)
{
    static_cast<Handle *>(handle)->math_mode = mode;
    return success;
}
EXPORT int cublasGetMathMode(void *handle, int *mode)
{
    *mode = static_cast<Handle *>(handle)->math_mode;
    return success;
}
EXPORT int cublasSetPointerMode_v2(void *handle, int mode)
{
    static_cast<Handle *>(handle)->pointer_mode = mode;
    return success;
}
EXPORT int cublasGetPointerMode_v2(void *handle, int *mode)
{
    *mode = static_cast<Handle *>(handle)->pointer_mode;
    return success;
}

EXPORT int cublasSgemm_v2(void *handle, int, int, int rows, int columns, int inner, const float *, const float *left,
                          int, const float *right, int, const float *, float *result, int)
{
    return multiply(handle, rows, columns, inner, left, right, result, 1);
}
EXPORT int cublasDgemm_v2(void *handle, int, int, int rows, int columns, int inner, const double *, const double *left,
                          int, const double *right, int, const double *, double *result, int)
{
    return multiply(handle, rows, columns, inner, left, right, result, 1);
}
EXPORT int cublasSgemmStridedBatched(void *handle, int, int, int rows, int columns, int inner, const float *,
                                     const float *left, int, long long, const float *right, int, long long,
                                     const float *, float *result, int, long long, int batches)
{
    return multiply(handle, rows, columns, inner, left, right, result, static_cast<unsigned>(batches));
}
EXPORT int cublasGemmEx(void *handle, int, int, int rows, int columns, int inner, const void *, const void *left, int,
                        int, const void *right, int, int, const void *, void *result, int, int, int, int)
{
    return multiply(handle, rows, columns, inner, left, right, result, 1);
}

// Device memory is given to another process, which may rely on the first wait after any work; or on none of them. What
// this process itself relies on stays required for its own reasons.
// variants: shared, own
#include "planted.h"

#include <cuda.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static void done(CUresult result)
{
    if (result != CUDA_SUCCESS)
        expect("result", result, CUDA_SUCCESS);
}

/* Makes memory that can be exported, and exports it. Nobody takes it. */
static void share()
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp wanted = {};
    int file = -1;
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    done(cuMemCreate(&handle, 2 << 20, &wanted, 0));
    done(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
}

void program()
{
    cudaStream_t first = independent_stream();
    cudaStream_t second = independent_stream();
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    if (variant("shared"))
        share();
    fill(made, count, 1, first);
    WAIT(alone, cudaStreamSynchronize(first)); // sync: shared required (undecidable), own unnecessary
    WAIT(again, cudaStreamSynchronize(first)); // sync: unnecessary
    fill(made, count, 7, first);
    WAIT(between, cudaStreamSynchronize(first)); // sync: required
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}

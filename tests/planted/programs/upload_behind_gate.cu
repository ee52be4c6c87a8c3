// What a stream is held by, the program lets go after it has enqueued an upload behind it: whoever waits there waits
// for ever. The held work is a wait for a value, or a function on the host.
// variants: value, function, large
#include "planted.h"

#include <cuda.h>

constexpr int count = 1024, longer = 1 << 18; /* more than what is read back while the program goes on */

static int *flag;

static void CUDART_CB wait_for_cpu(void *)
{
    while (__atomic_load_n(flag, __ATOMIC_SEQ_CST) == 0)
        continue;
}

void program()
{
    const int size = variant("large") ? longer : count;
    const size_t bytes = size * sizeof(int);
    const cudaStream_t stream = independent_stream();
    int *device = device_integers(size), *source = pinned_integers(size, 5), *back = pinned_integers(size);
    flag = pinned_integers(1024);
    for (int turn = 0; turn < 3; ++turn) {
        __atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
        if (variant("function"))
            check(cudaLaunchHostFunc(stream, wait_for_cpu, nullptr));
        else
            expect("held", cuStreamWaitValue32(stream, CUdeviceptr(flag), 1, CU_STREAM_WAIT_VALUE_GEQ), 0);
        // transfer: value, function needed and no-op, large needed and repeat
        UPLOAD_ASYNC(device, source, bytes, stream);
        __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
        DOWNLOAD_ASYNC(back, device, bytes, stream);
        WAIT(result, cudaStreamSynchronize(stream)); // sync: required
        expect("last", back[size - 1], 5);
    }
}

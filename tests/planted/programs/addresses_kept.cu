// A kernel that is given host memory stores its address in other memory that it is given, and a later one finds it
// there. One that is given no other memory cannot.
// variants: device, host, alone
#include "planted.h"

constexpr int count = 1024;

__global__ void keep(int **place, int *data)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        *place = data;
}
PORTABLE_KERNEL(keep);

__global__ void fill_kept(int *const *place, int value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        (*place)[i] = value;
}
PORTABLE_KERNEL(fill_kept);

void program()
{
    cudaStream_t stream = independent_stream();
    int *data = pinned_integers(count), *slow = device_integers(1);
    int **place = reinterpret_cast<int **>(variant("host") ? pinned_integers(2) : device_integers(2));
    if (variant("alone"))
        fill(data, count, 5, stream);
    else
        LAUNCH(keep, dim3(1), dim3(1), 0, stream, place, data);
    WAIT(kept, cudaStreamSynchronize(stream)); // sync: device, host unnecessary, alone required
    if (variant("alone"))
        expect("alone", data[7], 5);
    for (int turn = 1; turn < 4; turn++) {
        fill(slow, 1, 1, stream);
        if (!variant("alone"))
            LAUNCH(fill_kept, dim3(count / 128), dim3(128), 0, stream, place, turn);
        WAIT(filled, cudaStreamSynchronize(stream)); // sync: device, host required, alone unnecessary
        expect("value", data[7], variant("alone") ? 5 : turn);
    }
}

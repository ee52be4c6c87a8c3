// A kernel reads its input from mapped host memory. After a wait the CPU writes the next input there, or elsewhere.
// variants: there, elsewhere
#include "planted.h"

constexpr int count = 1024, turns = 3;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(turns * count), *result = pinned_integers(turns * count);
    int *inputs[turns + 1];
    for (int turn = 0; turn <= turns; ++turn)
        inputs[turn] = variant("there") && turn > 0 ? inputs[0] : pinned_integers(count);
    for (int turn = 0; turn < turns; ++turn) {
        add_slowly(device + turn * count, inputs[turn], count, stream);
        WAIT(wait, cudaStreamSynchronize(stream)); // sync: there required, elsewhere unnecessary
        for (int index = 0; index < count; ++index)
            inputs[turn + 1][index] = turn + 1;
    }
    settle();
    DOWNLOAD_ASYNC(result, device, turns * bytes, stream);
    WAIT(last, cudaStreamSynchronize(stream)); // sync: required
    expect("sum", sum(result, turns * count), (1 + 2 + 3) * count);
}

// Every step brings the same bytes to each of two or four devices, which hold them since the first step. The first one
// of each step could be copied to the others.
// variants: two, four, changed
#include "planted.h"

#include <vector>

constexpr int count = 4096, most = 4, steps = 3;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    const int devices = variant("four") ? most : 2;
    int *memory[most], *result[most], *host[most];
    std::vector<int> given(count, 5);
    for (int device = 0; device < devices; ++device) {
        check(cudaSetDevice(device));
        memory[device] = device_integers(count);
        result[device] = device_integers(count);
        host[device] = pinned_integers(count);
    }
    for (int step = 0; step < steps; ++step) {
        if (variant("changed"))
            given[0] = step;
        for (int device = 0; device < devices; ++device) {
            check(cudaSetDevice(device));
            // transfer: two, four needed and copy (of up) and no-op (of up), changed needed and copy (of up)
            WAIT(up, cudaMemcpyAsync(memory[device], given.data(), bytes, cudaMemcpyHostToDevice));
            add_slowly(result[device], memory[device], count);
        }
    }
    for (int device = 0; device < devices; ++device) {
        check(cudaSetDevice(device));
        DOWNLOAD_ASYNC(host[device], result[device], bytes); // transfer: needed or copy
        WAIT(of_end, cudaDeviceSynchronize());               // sync: required
        expect("sum", sum(host[device], count), 6 * count + (variant("changed") ? steps - 1 - 5 : 0));
    }
}

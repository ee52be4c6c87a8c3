// A stream uses memory, and another one the memory that is allocated after it was freed, at the same address. The free
// itself waits, so that nothing else needs to put the two in order; and without the free, the other memory lies
// elsewhere. Or the other stream gets the same memory, which was not freed.
// variants: freed, waited, kept
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *result = device_integers(count), *busy = device_integers(count), *host = pinned_integers(count);
    int *memory = device_integers(count), *next = memory;
    check(cudaMemsetAsync(memory, 1, bytes, first));
    fill(busy, count, 1, first);
    check(cudaMemcpyAsync(result, memory, bytes, cudaMemcpyDeviceToDevice, first));
    if (!variant("freed"))
        // sync: kept required, waited unnecessary or conditionally unnecessary, freed absent
        WAIT(done, cudaStreamSynchronize(first));
    if (!variant("kept")) {
        FREE(free, memory); // sync: freed, waited unnecessary, kept absent
        next = device_integers(count);
    }
    check(cudaMemsetAsync(next, 9, bytes, second));
    DOWNLOAD_ASYNC(host, result, bytes, first);
    WAIT(last, cudaStreamSynchronize(first)); // sync: required
    expect("sum", sum(host, count), count * 0x01010101LL);
}

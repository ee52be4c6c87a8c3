// A wait for an event that a launch itself records, at an arbitrary time: what it covers is unknown. On the virtual
// GPU it happens to cover the kernel.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaEvent_t launched;
    check(cudaEventCreateWithFlags(&launched, cudaEventDisableTiming));
    int *data = pinned_integers(count);
    int value = 7, length = count;
    void *arguments[] = {&data, &length, &value};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
    attribute.val.launchCompletionEvent.event = launched;
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(count / threads_of_block);
    configuration.blockDim = dim3(threads_of_block);
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    check(cudaLaunchKernelExC(&configuration, fill_kernel, arguments));
    WAIT(begun, cudaEventSynchronize(launched)); // sync: required (undecidable)
    WAIT(over, cudaStreamSynchronize(nullptr));  // sync: read required (undecidable), never unnecessary
    if (variant("read"))
        expect("sum", sum(data, count), 7 * count);
}

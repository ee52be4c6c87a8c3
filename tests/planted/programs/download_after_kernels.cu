// A download is repeated after a kernel that was given other memory only; or that finds the memory: in a structure
// among its parameters, in a table that was uploaded, or copied, or that an earlier kernel filled. At last by a graph.
// variants: all
#include "planted.h"

#include <new>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

struct Integers {
    long long count;
    int *data;
};

__global__ void fill_structure(Integers integers, int value)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < integers.count)
        integers.data[index] = value;
}
PORTABLE_KERNEL(fill_structure);

__global__ void fill_through(Integers *table, int value)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < table->count)
        table->data[index] = value;
}
PORTABLE_KERNEL(fill_through);

__global__ void store_address(Integers *table, int *data, long long count)
{
    *table = {count, data};
}
PORTABLE_KERNEL(store_address);

static Integers *device_table()
{
    void *table = nullptr;
    check(cudaMalloc(&table, sizeof(Integers)));
    return static_cast<Integers *>(table);
}

static Integers *pinned_table(int *data)
{
    void *table = nullptr;
    check(cudaMallocHost(&table, sizeof(Integers)));
    return new (table) Integers{count, data};
}

void program()
{
    const dim3 blocks(count / threads_of_block), threads(threads_of_block);
    int *host[6];
    for (int *&one : host)
        one = pageable_integers(count);
    int *device[6], *other = device_integers(count), *another = device_integers(count);
    for (int **one = device; one < device + 6; one++)
        fill(*one = device_integers(count), count, 7);
    Integers *uploaded = device_table(), *source = device_table(), *copied = device_table(), *stored = device_table();
    LAUNCH(store_address, dim3(1), dim3(1), 0, nullptr, stored, device[4], count);

    DOWNLOAD(first, host[0], device[0], bytes); // sync: required; transfer: needed (first)
    expect("first", sum(host[0], count), 7 * count);
    DOWNLOAD(second, host[1], device[1], bytes); // sync: required; transfer: copy
    expect("second", sum(host[1], count), 7 * count);
    DOWNLOAD(third, host[2], device[2], bytes); // sync: required; transfer: copy
    expect("third", sum(host[2], count), 7 * count);
    DOWNLOAD(fourth, host[3], device[3], bytes); // sync: required; transfer: copy
    expect("fourth", sum(host[3], count), 7 * count);
    DOWNLOAD(fifth, host[4], device[4], bytes); // sync: required; transfer: copy
    expect("fifth", sum(host[4], count), 7 * count);
    DOWNLOAD(sixth, host[5], device[5], bytes); // sync: required; transfer: copy
    expect("sixth", sum(host[5], count), 7 * count);

    // The bytes are the same before and after, so that waiting for the second download shows nothing.
    fill(other, count, 7);
    add_slowly(another, other, count);
    DOWNLOAD(beside, host[0], device[0], bytes); // sync: required (undecidable); transfer: no-op (of first)
    expect("beside", sum(host[0], count), 7 * count);

    LAUNCH(fill_structure, blocks, threads, 0, nullptr, Integers{count, device[1]}, 7);
    DOWNLOAD(structure, host[1], device[1], bytes); // sync: required (undecidable); transfer: needed
    expect("structure", sum(host[1], count), 7 * count);

    UPLOAD_ASYNC(uploaded, pinned_table(device[2]), sizeof(Integers)); // transfer: needed
    LAUNCH(fill_through, blocks, threads, 0, nullptr, uploaded, 7);
    DOWNLOAD(table, host[2], device[2], bytes); // sync: required (undecidable); transfer: needed
    expect("table", sum(host[2], count), 7 * count);

    UPLOAD_ASYNC(source, pinned_table(device[3]), sizeof(Integers)); // transfer: needed
    check(cudaMemcpyAsync(copied, source, sizeof(Integers), cudaMemcpyDeviceToDevice));
    LAUNCH(fill_through, blocks, threads, 0, nullptr, copied, 7);
    DOWNLOAD(copy, host[3], device[3], bytes); // sync: required (undecidable); transfer: needed
    expect("copy", sum(host[3], count), 7 * count);

    LAUNCH(fill_through, blocks, threads, 0, nullptr, stored, 7);
    DOWNLOAD(found, host[4], device[4], bytes); // sync: required (undecidable); transfer: needed
    expect("found", sum(host[4], count), 7 * count);

    fill(other, count, 7);
    DOWNLOAD(unreached, host[5], device[5], bytes); // sync: required (undecidable); transfer: no-op (of sixth)
    expect("unreached", sum(host[5], count), 7 * count);

    cudaStream_t stream = independent_stream();
    cudaGraphExec_t graph = captured(stream, [=] { fill(another, count, 7, stream); });
    check(cudaGraphLaunch(graph, stream));
    WAIT(launched, cudaStreamSynchronize(stream)); // sync: required (undecidable)
    DOWNLOAD(graphed, host[0], device[0], bytes);  // sync: required (undecidable); transfer: needed
    expect("graphed", sum(host[0], count), 7 * count);
}

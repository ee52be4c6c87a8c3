// Kernels find rows by a table of addresses in host memory, to which the CPU adds one after many launches.
// variants: pinned_20, pinned_100, pinned_1000, managed_20, managed_100, managed_1000, no_wait, overwritten, unchanged
// variants: pinned_far_20, managed_far_20, pinned_far_200, managed_far_200
#include <string_view>

#include "planted.h"

constexpr int width = 2048, table_bytes = 1 << 16, far_bytes = 16 << 20;

__global__ void set_last(int *const *table, int row, int value)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        table[row][width - 1] = value;
}
PORTABLE_KERNEL(set_last);

static int launches()
{
    const char *number = std::strrchr(planted::variant(), '_');
    const int found = number == nullptr ? 0 : std::atoi(number + 1);
    return found == 0 ? 100 : found;
}

static int *row_of_integers()
{
    void *memory = nullptr;
    if (std::strncmp(planted::variant(), "managed", 7) != 0)
        return pinned_integers(width);
    check(cudaMallocManaged(&memory, width * sizeof(int)));
    std::memset(memory, 0, width * sizeof(int));
    return static_cast<int *>(memory);
}

static bool is_far()
{
    return std::string_view(planted::variant()).find("far") != std::string_view::npos;
}

static int **empty_table()
{
    const int bytes = is_far() ? far_bytes : table_bytes;
    void *memory = nullptr;
    if (std::strncmp(planted::variant(), "managed", 7) == 0)
        check(cudaMallocManaged(&memory, bytes));
    else
        check(cudaMallocHost(&memory, bytes));
    std::memset(memory, 0, table_bytes);
    return static_cast<int **>(memory);
}

void program()
{
    cudaStream_t stream = independent_stream();
    int *slow = device_integers(1), **table = empty_table(), *row = row_of_integers(), *last = row_of_integers();
    const int far = far_bytes / static_cast<int>(sizeof(int *)) - 1;
    const int place = variant("overwritten") || variant("unchanged") ? 0 : is_far() ? far : 1;
    table[0] = row;
    for (int i = 0; i < launches(); i++) {
        if (is_far()) // so it is looked at anew each time
            table[1 + i] = nullptr;
        LAUNCH(set_last, dim3(1), dim3(1), 0, stream, table, 0, 5);
        if (!variant("no_wait"))
            // sync: no_wait absent, unchanged unnecessary, pinned_20, pinned_100, pinned_1000, managed_20, managed_100, managed_1000, overwritten unnecessary or required and unnecessary, pinned_far_20, managed_far_20, pinned_far_200, managed_far_200 unnecessary or required
            WAIT(repeated, cudaStreamSynchronize(stream));
    }
    if (!variant("unchanged"))
        table[place] = last;
    fill(slow, 1, 1, stream);
    LAUNCH(set_last, dim3(1), dim3(1), 0, stream, table, place, 6);
    WAIT(grown, cudaStreamSynchronize(stream)); // sync: required
    expect("last row", variant("unchanged") ? row[width - 1] : last[width - 1], 6);
}

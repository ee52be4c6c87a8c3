// A kernel finds memory by the addresses that the CPU stored in memory that both access: a list's nodes, rows of a
// table, the members of a structure that the CPU sets anew for each launch.
// variants: all
#include "planted.h"

constexpr int rows = 3, width = 2048;

struct Node {
    Node *next;
    int value;
    int rest[2000];
};

struct Members {
    int *from, *to;
};

__global__ void set_all(Node *node, int value)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        for (; node != nullptr; node = node->next)
            node->value = value;
}
PORTABLE_KERNEL(set_all);

__global__ void set_rows(int **table, int value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int row = 0; row < rows && i < width; row++)
        table[row][i] = value;
}
PORTABLE_KERNEL(set_rows);

__global__ void next_of(Members *members)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width)
        members->to[i] = members->from[i] + 1;
}
PORTABLE_KERNEL(next_of);

void list(int *slow, cudaStream_t stream)
{
    Node *head = nullptr, *last = nullptr;
    for (int i = 0; i < 4; i++) {
        Node *node;
        check(cudaMallocManaged(reinterpret_cast<void **>(&node), sizeof *node));
        node->next = head;
        node->value = 0;
        head = node;
        last = i == 0 ? node : last;
    }
    fill(slow, 1, 1, stream);
    LAUNCH(set_all, dim3(1), dim3(1), 0, stream, head, 5);
    WAIT(listed, cudaStreamSynchronize(stream)); // sync: required
    expect("last", last->value, 5);
    fill(slow, 1, 1, stream);
    LAUNCH(set_all, dim3(1), dim3(1), 0, stream, head, 6);
    WAIT(in_vain, cudaStreamSynchronize(stream)); // sync: unnecessary
}

void table(int *slow, cudaStream_t stream)
{
    int **rows_of;
    check(cudaMallocHost(reinterpret_cast<void **>(&rows_of), 1 << 16));
    for (int i = 0; i < rows; i++)
        rows_of[i] = pinned_integers(width);
    fill(slow, 1, 1, stream);
    LAUNCH(set_rows, dim3(width / 128), dim3(128), 0, stream, rows_of, 5);
    WAIT(tabled, cudaStreamSynchronize(stream)); // sync: required
    expect("row", rows_of[1][width - 1], 5);
}

/* A long table gets its last row after many launches. */
void longer_table(int *slow, cudaStream_t stream)
{
    constexpr int launches = 40;
    int **rows_of;
    check(cudaMallocHost(reinterpret_cast<void **>(&rows_of), 1 << 16));
    for (int i = 0; i < rows; i++)
        rows_of[i] = pinned_integers(width);
    for (int i = 0; i < launches; i++)
        LAUNCH(set_rows, dim3(width / 128), dim3(128), 0, stream, rows_of, 5);
    WAIT(used, cudaStreamSynchronize(stream)); // sync: required (undecidable)
    rows_of[1] = pinned_integers(width);
    fill(slow, 1, 1, stream);
    LAUNCH(set_rows, dim3(width / 128), dim3(128), 0, stream, rows_of, 6);
    WAIT(longer, cudaStreamSynchronize(stream)); // sync: required
    expect("new row", rows_of[1][width - 1], 6);
}

void members(int *slow, cudaStream_t stream)
{
    Members *both;
    check(cudaMallocHost(reinterpret_cast<void **>(&both), sizeof *both));
    int *buffers[4];
    for (int *&buffer : buffers)
        buffer = pinned_integers(width);
    for (int i = 0; i < 3; i++) {
        *both = {buffers[i], buffers[i + 1]};
        fill(slow, 1, 1, stream);
        LAUNCH(next_of, dim3(width / 128), dim3(128), 0, stream, both);
        WAIT(each, cudaStreamSynchronize(stream)); // sync: required
        expect("next", buffers[i + 1][7], i + 1);
    }
}

void program()
{
    cudaStream_t stream = independent_stream();
    int *slow = device_integers(1);
    list(slow, stream);
    table(slow, stream);
    longer_table(slow, stream);
    members(slow, stream);
}

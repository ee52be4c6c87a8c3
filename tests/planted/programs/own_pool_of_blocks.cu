// The program gives blocks of its own pool to downloads, and takes them back without looking at them. The next user
// writes into such a block, or asks for one that nobody used.
// variants: again, fresh
#include "planted.h"

#include <vector>

constexpr int count = 2048, turns = 3;
constexpr size_t bytes = count * sizeof(int);

static std::vector<int *> blocks;

static int *take()
{
    int *block = variant("again") ? blocks.back() : blocks.front();
    variant("again") ? blocks.pop_back() : void(blocks.erase(blocks.begin()));
    return block;
}

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count);
    for (int index = 0; index < 2 * turns; ++index)
        blocks.push_back(pinned_integers(count));
    for (int turn = 0; turn < turns; ++turn) {
        int *block = take();
        fill(device, count, 70 + turn, stream);
        DOWNLOAD_ASYNC(block, device, bytes, stream);
        WAIT(wait, cudaStreamSynchronize(stream)); // sync: again required, fresh unnecessary
        blocks.push_back(block);
        int *own = take();
        for (int index = 0; index < count; ++index)
            own[index] = turn;
        settle();
        expect("own", sum(own, count), turn * count);
        blocks.push_back(own);
    }
}

// A loop launches two kernels on managed memory, waits, and reads what they wrote in each turn, in one of 107, in all
// but these, or up to a turn. What is always used after the same wait is watched now and again only, and counts as used
// otherwise.
// variants: each, some, most, until
#include "planted.h"

#include <string>

constexpr int count = 16, distance = 107;

/* A kind may be tried more often than the other watch, or a proof, has time for. */
static const char *const kinds[] = {"each", "some", "most", "until"};

static bool is(const char *kind)
{
    return variant(kind) || variant((std::string(kind) + "_often").c_str());
}

static int turns()
{
    for (const char *kind : kinds)
        if (variant(kind))
            return planted::proving() ? 3 : 160;
    return 1400;
}

/* In one turn of each 107, at irregular distances. */
static bool is_odd(int turn)
{
    return turn % distance == turn / distance * 29 % distance;
}

static bool reads(int turn)
{
    if (is("until"))
        return turn < turns() / 2;
    if (is("some"))
        return is_odd(turn);
    return is("each") || !is_odd(turn);
}

void program()
{
    void *memory = nullptr;
    check(cudaMallocManaged(&memory, count * sizeof(int), cudaMemAttachGlobal));
    int *block = static_cast<int *>(memory);
    for (int turn = 0; turn < turns(); ++turn) {
        for (const int value : {0, turn})
            fill(block, count, value);
        if (is("each"))
            WAIT(always, cudaStreamSynchronize(nullptr)); // sync: each required, some, most, until absent
        else
            // sync: each absent, some, most, until required and unnecessary
            check(cudaStreamSynchronize(nullptr));
        if (reads(turn))
            expect("sum", sum(block, count), 1LL * turn * count);
    }
}

// The only block of its kind holds a result. The program works beside it tens of thousands of times, and reads it at
// the end, or never.
// variants: end, never
#include "planted.h"

#include <cstdlib>

constexpr int count = 500;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    auto block = [] { return static_cast<int *>(std::calloc(count, sizeof(int))); };
    volatile int *before = block();
    int *result = block();
    volatile int *behind = block();
    int *device = device_integers(count);
    fill(device, count, 7);
    DOWNLOAD(last, result, device, bytes); // sync: end required, never unnecessary
    for (int turn = 0; turn < (planted::complete() ? 40000 : 10); ++turn)
        before[turn % count] = behind[turn % count] = turn;
    expect("written", behind[count - 1] + before[0] >= 0, 1);
    if (variant("end"))
        expect("sum", sum(result, count), 7LL * count);
}

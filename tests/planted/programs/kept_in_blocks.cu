// A loop keeps what each turn downloads in a small block of the heap, works all the time with blocks that lie between
// these, and reads what came in each turn, in one of 107, in all but these, or up to a turn.
// variants: each, some, most, until
// like: kept_in_array
#include "by_habit.h"

#include <vector>

void program()
{
    int *device = device_integers(count);
    std::vector<int *> results;
    std::vector<volatile int *> others;
    const int accesses = turns() > 1000 ? 60 : 3;
    for (int turn = 0; turn < turns(); ++turn) {
        results.push_back(static_cast<int *>(std::calloc(4, sizeof(int))));
        others.push_back(static_cast<volatile int *>(std::calloc(50, sizeof(int))));
        fill(device, count, turn);
        if (is("each"))
            DOWNLOAD(always, results[turn], device, 4 * sizeof(int)); // sync: each required, some, most, until absent
        else
            // sync: each absent, some, most, until required and unnecessary
            check(cudaMemcpy(results[turn], device, 4 * sizeof(int), cudaMemcpyDeviceToHost));
        for (int place = 0; place < accesses; ++place)
            others[place * 7 % (turn + 1)][place % 50] = place;
        if (reads(turn)) {
            expect("sum", sum(results[turn], 4), 4LL * turn);
            std::free(results[turn]); // a later one can get the same place
        }
    }
}

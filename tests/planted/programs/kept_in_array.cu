// A loop keeps what each turn downloads in an array of structures, works with other parts of these all the time, and
// reads what came in each turn, in one of 107, in all but these, or up to a turn.
// variants: each, some, most, until
#include "by_habit.h"

struct Element {
    int result;
    volatile int others[7];
};

void program()
{
    int *device = device_integers(count);
    auto *kept = static_cast<Element *>(std::calloc(1400, sizeof(Element)));
    const int accesses = turns() > 1000 ? 60 : 3;
    for (int turn = 0; turn < turns(); ++turn) {
        fill(device, count, turn);
        if (is("each"))
            DOWNLOAD(always, &kept[turn].result, device, sizeof(int)); // sync: each required, some, most, until absent
        else
            // sync: each absent, some, most, until required and unnecessary
            check(cudaMemcpy(&kept[turn].result, device, sizeof(int), cudaMemcpyDeviceToHost));
        for (int place = 0; place < accesses; ++place)
            kept[place * 7 % (turn + 1)].others[place % 7] = place;
        if (reads(turn))
            expect("result", kept[turn].result, turn);
    }
}

// The program ends while others look: quick_exit's functions, exit called in a function of exit, a destructor of an
// object file, or _Exit, after which nobody looks.
// variants: quick, nested, attribute, none
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int *host;

static void look()
{
    const bool right = sum(host, count) == 7 * count;
    std::printf("late sum: %s\n", right ? "right" : "wrong");
    std::fflush(stdout);
    _exit(right && !planted::failed() ? 0 : 1);
}

__attribute__((destructor)) static void at_the_end()
{
    if (variant("attribute"))
        look();
}

static void exit_again()
{
    std::atexit(look);
    std::exit(0);
}

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: quick, nested, attribute required, none unnecessary
    if (variant("quick")) {
        std::at_quick_exit(look);
        std::quick_exit(0);
    }
    if (variant("nested")) {
        std::atexit(exit_again);
        std::exit(0);
    }
    if (variant("none")) {
        std::fflush(stdout);
        std::_Exit(0);
    }
}

// Many calls of write(2), which the watch does not intercept one by one any more, before those that read what a
// download brings; or they write other memory, while a signal interrupts one or other threads write.
// variants: destination, other, beside, handler, again, many
#include "planted.h"

#include <atomic>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <thread>

constexpr int count = 512, often = 300; /* half a page */
constexpr size_t bytes = count * sizeof(int);

static int *host, *beside;
static int nowhere;
static std::atomic<bool> over{false};
static volatile long handled;

static void write_often(const int *memory)
{
    for (int number = 0; number < often; number++)
        if (write(nowhere, memory, bytes) != bytes)
            std::abort();
}

/* What the pipe holds is written by the handler, and read back by the program. */
static int ends[2];

static void handle(int)
{
    handled = write(nowhere, host, bytes) + write(ends[1], host, sizeof(int));
}

static void fill_pipe(int full[2])
{
    static const char zeros[4096] = {};
    if (pipe(full) != 0 || fcntl(full[1], F_SETFL, O_NONBLOCK) != 0)
        std::abort();
    while (write(full[1], zeros, sizeof zeros) > 0)
        continue;
    fcntl(full[1], F_SETFL, 0);
}

/* The handler interrupts a call that cannot go on. */
static long interrupted(int flags)
{
    const itimerval soon = {{0, 5000}, {0, 1000}}, never = {}; /* again, should the first come before the call */
    struct sigaction action = {};
    int full[2];
    fill_pipe(full);
    action.sa_handler = handle;
    action.sa_flags = flags;
    sigaction(SIGALRM, &action, nullptr);
    std::thread reader([&] {
        char freed[8192];
        while (handled == 0)
            usleep(1000);
        usleep(10000);
        if (flags != 0 && read(full[0], freed, sizeof freed) <= 0)
            std::abort();
    });
    setitimer(ITIMER_REAL, &soon, nullptr);
    const long answer = write(full[1], beside, sizeof(int));
    setitimer(ITIMER_REAL, &never, nullptr);
    reader.join();
    return answer;
}

void program()
{
    int *device = device_integers(count);
    int found = 0;
    host = pinned_integers(2 * count, 3);
    beside = host + count;
    nowhere = open("/dev/null", O_WRONLY);
    if (pipe(ends) != 0)
        std::abort();
    int *other = pageable_integers(count, 3);
    write_often(other);
    std::thread writer([&] {
        while (variant("many") && !over)
            write_often(beside);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: destination, handler, again required, other, beside unnecessary, many required (undecidable) or unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    over = true;
    writer.join();
    const int *written = variant("other") ? other : variant("destination") ? host : beside;
    write_often(variant("other") ? other : beside);
    if (variant("handler"))
        expect("interrupted", interrupted(0), -1);
    else if (variant("again"))
        expect("begun again", interrupted(SA_RESTART), sizeof(int));
    else
        expect("written", write(ends[1], written, sizeof(int)), sizeof(int));
    expect("read", read(ends[0], &found, sizeof(int)), sizeof(int));
    expect("found", found, variant("destination") || variant("handler") || variant("again") ? 7 : 3);
}

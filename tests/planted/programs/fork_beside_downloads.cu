// While a thread downloads, and another takes memory from the system, a third forks children, one after the other.
// variants: read
#include "planted.h"

#include <atomic>
#include <sys/wait.h>
#include <thread>

constexpr int count = 16 * 1024, children = 5;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count), *host = pageable_integers(count);
    std::atomic<bool> over{false};
    std::thread memory([&] {
        while (!over)
            munmap(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes);
    });
    std::thread forks([&] {
        for (int number = 0; number < children; ++number) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            int status = -1;
            waitpid(child, &status, 0);
            expect("child", status, 0);
        }
        over = true;
    });
    long long wrong = 0;
    int value = 0;
    do {
        fill(device, count, ++value);
        DOWNLOAD(copy, host, device, bytes); // sync: read required
        wrong += sum(host, count) != static_cast<long long>(value) * count;
    } while (!over);
    memory.join();
    forks.join();
    expect("wrong", wrong, 0);
}

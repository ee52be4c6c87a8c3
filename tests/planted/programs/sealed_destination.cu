// The program seals the memory of a download (mseal, Linux 6.10), so that nothing can change its protection: before the
// download, or after the wait.
// variants: before, after, unread
#include "planted.h"

#include <sys/syscall.h>

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);
constexpr long sealing = 462;

void program()
{
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *host = static_cast<int *>(memory), *device = device_integers(count);
    check(cudaHostRegister(memory, bytes, 0));
    if (!variant("after"))
        syscall(sealing, memory, bytes, 0);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: before, after required, unread unnecessary or required (undecidable)
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("after"))
        syscall(sealing, memory, bytes, 0);
    if (!variant("unread"))
        expect("sum", sum(host, count), 7 * count);
    settle();
}

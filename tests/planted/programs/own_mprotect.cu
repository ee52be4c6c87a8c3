// The program sets the protection of the pages itself before it reads what came there; or it never reads. From then
// on it owns their protection, so the wait counts as needed even if it is not.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *host = static_cast<int *>(memory);
    host[0] = 0;
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: read required, never required (undecidable)
    expect("protected", mprotect(host, bytes, planted::keeps("copy") ? PROT_READ : PROT_READ | PROT_WRITE), 0);
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}

// As copy_over_page, by a single instruction that repeats itself.
// variants: into, before
// like: copy_backwards
#include "planted.h"

#include <vector>

constexpr int count = 64;
constexpr int ahead = 100;

void copy(void *to, const void *from, size_t bytes)
{
#ifdef __x86_64__
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    std::memcpy(to, from, bytes);
#endif
}

void program()
{
    int *device = device_integers(count);
    int *page = pinned_integers(1024, 1);
    std::vector<int> copied(1024);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(page + ahead, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: into required, before unnecessary
    int length = variant("into") ? ahead + count : ahead;
    copy(copied.data(), page, length * sizeof(int));
    expect("sum", sum(copied.data(), length), ahead + (variant("into") ? 7 * count : 0));
}

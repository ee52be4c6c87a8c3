// Small downloads into blocks of the heap, which are given back; then others use their place. Each is left alone, or
// read before, or the C library reads it to move it. A block beside it that is freed ends nothing. variants: told
#include "planted.h"

#include <thread>

constexpr int count = 640; // 2.5 KiB
constexpr size_t bytes = count * sizeof(int);

static int *device;

static void use_again(size_t size)
{
    for (int turn = 0; turn < 8; ++turn)
        std::free(std::memset(std::malloc(size), turn, size));
}

static int *downloaded(int *host)
{
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes);
    return host;
}

void program()
{
    device = device_integers(count);
    use_again(bytes);
    std::free(downloaded(pageable_integers(count)));
    use_again(bytes);
    delete[] downloaded(new int[count]());
    use_again(bytes);
    int *larger = pageable_integers(50 * count); // which the download begins in the middle of
    downloaded(larger + 25 * count);
    std::free(larger);
    use_again(50 * bytes);
    int *by_other = downloaded(pageable_integers(count));
    std::thread([=] { std::free(by_other); }).join();
    use_again(bytes);
    int *read = downloaded(pageable_integers(count));
    expect("read", sum(read, count), 7 * count);
    std::free(read);
    int *beside[3] = {pageable_integers(count), pageable_integers(count), pageable_integers(count)};
    downloaded(beside[1]);
    std::free(beside[0]);
    std::free(beside[2]);
    expect("beside", sum(beside[1], count), 7 * count);
    std::free(beside[1]);
    int *kept = downloaded(pageable_integers(count));
    int *wall = pageable_integers(count);
    int *moved = static_cast<int *>(std::realloc(kept, 64 * bytes));
    expect("moved", sum(moved, count) + wall[0], 7 * count);
}

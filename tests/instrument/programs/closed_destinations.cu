/* Downloads to memory that is closed since an earlier one, which nobody has used: as a whole, in a part, beside others,
 * refused, read meanwhile, or when no file can be had for it. */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static constexpr std::size_t page = 4096, large = 256 << 10, all = 1 << 20;
static char *device;

static void fill(int value)
{
    cudaMemset(device, value, all);
}

static void download(char *to, std::size_t bytes, cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    const cudaError_t error = cudaMemcpy(to, device, bytes, kind);
    if (error != cudaSuccess)
        std::printf("%s\n", cudaGetErrorName(error));
}

/* How many bytes from an address on have the value, up to so many. */
static void tell(const char *what, const char *from, int value, std::size_t bytes)
{
    std::size_t alike = 0;
    while (alike < bytes && from[alike] == value)
        alike++;
    std::printf("%s: %zu of %zu\n", what, alike, bytes);
}

static char *pages(std::size_t bytes, int file = -1)
{
    const int flags = MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0);
    return static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0));
}

static void again(char *to, std::size_t bytes)
{
    for (int turn = 1; turn <= 5; turn++) {
        fill(turn);
        download(to, bytes, turn % 2 == 0 ? cudaMemcpyDefault : cudaMemcpyDeviceToHost);
    }
    tell("again", to, 5, bytes);
}

/* The smaller ones lie within what the larger one has closed, or begin or end beside it. */
static void within(char *to)
{
    for (int turn = 1; turn <= 3; turn++) {
        fill(turn);
        download(to + page, 2 * page);
        fill(turn + 10);
        download(to + page + 100, 200);
        download(to + 2 * page - 8, 16);
        download(to + 3 * page - 8, 16);
        download(to + page - 8, 16);
    }
    tell("before", to + page - 8, 13, 16);
    tell("between", to + page + 8, 3, 92);
    tell("within", to + page + 100, 13, 200);
    tell("on two pages", to + 2 * page - 8, 13, 16);
    tell("behind", to + 3 * page - 8, 13, 16);
}

static void beside()
{
    char *block = static_cast<char *>(std::malloc(40 * 600));
    for (int turn = 1; turn <= 3; turn++)
        for (int place = 0; place < 40; place++) {
            fill(turn * 40 + place);
            download(block + place * 600, 500);
        }
    for (int place = 0; place < 40; place += 13)
        tell("beside", block + place * 600, static_cast<char>(3 * 40 + place), 500);
    std::free(block);
}

static void refused(char *to)
{
    fill(1);
    download(to, page);
    fill(2);
    download(to, 2 * all);
    std::printf("%s\n", cudaGetErrorName(cudaMemcpy(to, to + 2 * page, page, cudaMemcpyDeviceToHost)));
    cudaMemcpy(to, nullptr, page, cudaMemcpyDeviceToHost);
    tell("refused", to, 1, page);
}

static void read_meanwhile(char *to)
{
    std::atomic<bool> over{false};
    long sum = 0;
    std::thread reader([&] {
        while (!over)
            sum += *static_cast<volatile char *>(to + page - 1);
    });
    for (int turn = 1; turn <= 20; turn++) {
        fill(7);
        download(to, page);
    }
    over = true;
    reader.join();
    tell("read meanwhile", to, 7, page);
}

static void forked(char *to)
{
    for (int turn = 1; turn <= 2; turn++) {
        fill(turn);
        download(to, page);
        std::fflush(stdout);
        if (fork() == 0) {
            tell("child", to, turn, page);
            std::fflush(stdout);
            _exit(0);
        }
        wait(nullptr);
        fill(turn + 2);
        download(to, page);
    }
    tell("parent", to, 4, page);
}

static void without_files(char *to)
{
    for (int turn = 1; turn <= 3; turn++) {
        fill(turn);
        if (turn > 1) /* while the next call waits */
            cudaLaunchHostFunc(nullptr, [](void *) { close_range(640, ~0U, 0); }, nullptr);
        download(to, page);
    }
    tell("without files", to, 3, page);
}

int main()
{
    if (cudaMalloc(reinterpret_cast<void **>(&device), all) != cudaSuccess)
        return 1;
    again(pages(page), page);
    again(pages(large), large);
    again(pages(page, open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), page);
    within(pages(8 * page));
    beside();
    refused(pages(8 * page));
    read_meanwhile(pages(page));
    forked(pages(page));
    without_files(pages(page));
}

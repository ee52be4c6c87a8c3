/* Copies that the driver refuses, of sizes that reach beyond the program's memory, or that it cannot read. */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static constexpr std::size_t page = 4096, large = 1 << 30;

static void tell(const char *what, cudaError_t error)
{
    std::printf("%s: %s\n", what, cudaGetErrorName(error));
}

static void *memory(int protection)
{
    return mmap(nullptr, page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void on_fault(int)
{
    std::printf("its own fault\n");
    std::fflush(stdout);
    _exit(0);
}

int main()
{
    int *device = nullptr;
    std::vector<int> small(page / sizeof(int));
    if (cudaMalloc(reinterpret_cast<void **>(&device), page) != cudaSuccess)
        return 1;
    std::vector<void *> places = {small.data(), memory(PROT_NONE), reinterpret_cast<void *>(0x8000),
                                  reinterpret_cast<void *>(0x8000000000000000)};
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    places.push_back(mmap(nullptr, page, PROT_READ, MAP_PRIVATE, file, 1L << 40)); /* beyond the file's end: SIGBUS */
    for (void *place : places) {
        tell("upload", cudaMemcpy(device, place, large, cudaMemcpyHostToDevice));
        tell("download", cudaMemcpy(place, device, large, cudaMemcpyDeviceToHost));
        tell("rows", cudaMemcpy2D(device, page, place, page, page, large / page, cudaMemcpyHostToDevice));
    }
    tell("upload", cudaMemcpy(device, small.data(), page, cudaMemcpyHostToDevice));
    tell("download", cudaMemcpy(small.data(), device, page, cudaMemcpyDeviceToHost));
    std::fflush(stdout);
    std::signal(SIGSEGV, on_fault);
    return *static_cast<volatile int *>(places[1]);
}

// A program that uses memory protection keys (pkeys(7)) itself, while a thread of it overwrites the source of an
// upload. Prints what it could do with each of its keys; nothing more where there are no keys.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <thread>

#include <cuda_runtime_api.h>
#include <sys/mman.h>

static sigjmp_buf before;

static void on_fault(int)
{
    siglongjmp(before, 1);
}

static const char *tried(volatile int *page)
{
    if (sigsetjmp(before, 1) != 0)
        return "refused";
    *page = 1;
    return "written";
}

static volatile int *keyed_page(int key)
{
    void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || pkey_mprotect(page, 4096, PROT_READ | PROT_WRITE, key) != 0)
        std::puts("no page");
    return static_cast<volatile int *>(page);
}

static void overwrite_source(int *source, int *device)
{
    for (int round = 0; round < 3; ++round) {
        cudaMemcpyAsync(device, source, 4096, cudaMemcpyHostToDevice, nullptr);
        cudaDeviceSynchronize();
        cudaDeviceSynchronize();
        for (int index = 0; index < 1024; ++index)
            static_cast<volatile int *>(source)[index] = round;
    }
}

int main()
{
    std::signal(SIGSEGV, on_fault);
    int *source = nullptr, *device = nullptr;
    cudaMallocHost((void **)&source, 4096);
    cudaMalloc((void **)&device, 4096);
    std::thread worker(overwrite_source, source, device);
    worker.join();
    std::thread other([] {});
    overwrite_source(source, device);
    const int open = pkey_alloc(0, 0), closed = pkey_alloc(0, PKEY_DISABLE_WRITE);
    if (open > 0 && closed > 0) {
        std::puts(tried(keyed_page(open)));
        std::puts(tried(keyed_page(closed)));
        pkey_set(closed, 0); // after a handler that was left by a jump, all is refused
        std::puts(tried(keyed_page(closed)));
    }
    other.join();
    overwrite_source(source, device);
    std::printf("%d\n", source[0]);
    return 0;
}

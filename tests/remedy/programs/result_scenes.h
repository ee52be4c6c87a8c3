/* Results in host memory, and who reads them. */
#ifndef FFM_TEST_RESULT_SCENES_H
#define FFM_TEST_RESULT_SCENES_H

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>

#include "scene.h"

namespace
{

void result_is_read()
{
    int *host = on_host();
    for (int turn = 0; turn < 3; ++turn)
        std::printf("%d\n", sum(download(host, turn)));
    int *pinned = nullptr;
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&pinned), bytes));
    std::printf("%d\n", sum(download(pinned, 9)));
}

/* The memory goes back to its pool in the order of a stream. */
void result_of_managed_memory()
{
    int *host = on_host(), *device = nullptr;
    REQUIRE(cudaMallocManaged(reinterpret_cast<void **>(&device), bytes));
    start_fill(device, 5);
    REQUIRE(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    REQUIRE(cudaFree(device));
    std::printf("%d\n", sum(host));
}

void result_is_overwritten()
{
    int *host = download(on_host(), 1);
    host[5] = 0;
    host[count - 1] = 0;
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", sum(host));
}

void result_is_on_the_stack()
{
    int host[count];
    std::printf("%d\n", sum(download(host, 4)));
    std::thread([] {
        int others[count];
        std::printf("%d\n", sum(download(others, 5)));
    }).join();
}

/* The next two numbers in a pipe. */
void show_next(int end)
{
    int fetched[2] = {};
    const ssize_t length = read(end, fetched, sizeof fetched);
    std::printf("%zd %d %d\n", length, fetched[0], fetched[1]);
}

void result_is_written()
{
    int *host = download(on_host(), 1);
    std::fflush(stdout);
    int ends[2];
    const int other = 9;
    if (pipe(ends) != 0)
        std::exit(1);
    std::printf("%zd\n", write(ends[1], host, 2 * sizeof *host));
    show_next(ends[0]);
    download(host, 3);
    iovec pieces[2] = {{const_cast<int *>(&other), 4}, {host + 1, 4}};
    std::printf("%zd\n", writev(ends[1], pieces, 2));
    show_next(ends[0]);
    FILE *file = std::tmpfile();
    download(host, 5);
    std::printf("%zu\n", std::fwrite(host, 1, bytes, file));
    std::rewind(file);
    int *again = on_host();
    std::printf("%zu %d\n", std::fread(again, 1, bytes, file), sum(again));
}

#ifdef RAW_SYSTEM_CALLS
/* Past the C library, as a Go runtime does. */
void result_is_written_raw()
{
    int ends[2];
    if (pipe(ends) != 0)
        std::exit(1);
    int *host = download(on_host(), 1);
    long written, number = 1; /* write */
    __asm__ volatile(RAW_SYSTEM_CALLS "\n\tsyscall"
                     : "=a"(written), "+c"(number)
                     : "D"(ends[1]), "S"(host), "d"(2 * sizeof *host)
                     : "r11", "memory");
    std::printf("%ld\n", written);
    show_next(ends[0]);
}
#endif

void result_is_read_over()
{
    int *host = download(on_host(), 1), ends[2];
    const int other[2] = {7, 8};
    if (pipe(ends) != 0 || write(ends[1], other, sizeof other) != sizeof other)
        std::exit(1);
    std::printf("%zd\n", read(ends[0], host, sizeof other));
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d %d %d\n", host[0], host[1], sum(host));
}

void result_is_freed()
{
    for (int turn = 0; turn < 4; ++turn) {
        int *host = download(on_host(), turn);
        std::free(host);
        int *next = on_host();
        REQUIRE(cudaDeviceSynchronize());
        std::printf("%d\n", sum(next));
        std::free(next);
    }
    void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    download(static_cast<int *>(pages), 3);
    mmap(pages, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", sum(static_cast<int *>(pages)));
}

/* From the heap, with a library that gives such blocks pages of their own: too small to be mapped by itself. */
int *small_download(int value)
{
    constexpr std::size_t small = 5000 * sizeof(int);
    static int *device = on_device();
    start_fill(device, value);
    int *host = static_cast<int *>(std::malloc(small));
    REQUIRE(cudaMemcpy(host, device, small, cudaMemcpyDeviceToHost));
    return host;
}

void result_is_on_the_heap()
{
    int *first = small_download(1), *second = small_download(2);
    std::printf("%d %d\n", first[4999], second[4999]);
    first = static_cast<int *>(std::realloc(small_download(3), 100'000 * sizeof(int)));
    std::printf("%d\n", first[4999]);
    /* The heap shrinks below the block, and grows again over it. */
    for (int turn = 0; turn < 3; ++turn) {
        std::free(small_download(4 + turn));
        malloc_trim(0);
        int *next = static_cast<int *>(std::malloc(5000 * sizeof(int)));
        std::memset(next, 0, 5000 * sizeof(int));
        REQUIRE(cudaDeviceSynchronize());
        std::printf("%d %d\n", next[0], next[4999]);
        std::free(next);
    }
}

void heap_has_many_blocks()
{
    int *others[1000];
    int *first = small_download(1);
    for (int *&other : others)
        std::memset(other = static_cast<int *>(std::malloc(5000 * sizeof(int))), 0, 5000 * sizeof(int));
    int *last = small_download(2);
    std::printf("%d %d\n", first[4999], last[4999]);
    for (int *other : others)
        std::free(other);
}

/* Memory of the heap on which a thread runs. */
void result_is_on_a_stack_from_the_heap()
{
    constexpr std::size_t size = 4 << 20;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, std::malloc(size), size);
    pthread_t thread;
    auto work = [](void *) -> void * {
        alignas(4096) int host[5000];
        static int *device = on_device();
        start_fill(device, 7);
        REQUIRE(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
        std::printf("%d\n", host[4999]);
        return nullptr;
    };
    pthread_create(&thread, &attributes, work, nullptr);
    pthread_join(thread, nullptr);
}

/* Results of many steps side by side, which are read together: 20 on one page of pinned memory, and 3 of unequal length
 * in a block of the heap. */
void results_share_pages()
{
    constexpr int steps = 20;
    int *device = on_device(), *pinned = nullptr, *block = on_host();
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&pinned), steps * sizeof(int)));
    for (int step = 0; step < steps; ++step) {
        start_fill(device, step);
        REQUIRE(cudaMemcpy(pinned + step, device, sizeof(int), cudaMemcpyDeviceToHost));
    }
    for (int step = 0; step < steps; ++step)
        std::printf("%d ", pinned[step]);
    for (int part = 0; part < 3; ++part) {
        start_fill(device, part);
        REQUIRE(cudaMemcpy(block + 1024 * part, device, (part + 1) * 1300, cudaMemcpyDeviceToHost));
    }
    std::printf("%d\n", sum(block));
    /* The later one onto the same bytes stands. */
    for (int step = 0; step < 3; ++step) {
        start_fill(device, step);
        REQUIRE(cudaMemcpy(pinned, device, 2 * sizeof(int), cudaMemcpyDeviceToHost));
    }
    std::printf("%d %d %d\n", pinned[0], pinned[1], pinned[2]);
}

/* Whether heap blocks were given pages of their own. */
void library_is_loaded()
{
    std::printf("%d\n", dlsym(RTLD_DEFAULT, "ffm_marks_of_heap") != nullptr);
    int *host = download(on_host(), 1);
    std::printf("%d\n", sum(host));
}

/* Of two results side by side. */
void results_are_written_together()
{
    int *device = on_device(), *host = on_host(), *again = on_host();
    for (int part = 0; part < 2; ++part) {
        start_fill(device, part);
        REQUIRE(cudaMemcpy(host + part * count / 2, device, bytes / 2, cudaMemcpyDeviceToHost));
    }
    FILE *file = std::tmpfile();
    std::printf("%ld\n", syscall(SYS_write, fileno(file), host, bytes));
    std::printf("%zd %d\n", pread(fileno(file), again, bytes, 0), sum(again));
}

int depth_of_calls(int calls)
{
    volatile char frame[512] = {};
    return calls == 0 ? frame[0] : 1 + depth_of_calls(calls - 1) + frame[1];
}

/* The frames of functions called later would be on the pages of the result. */
void result_is_on_the_stack_of_a_coroutine()
{
    constexpr std::size_t size = 4 << 20;
    static ucontext_t main, coroutine;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    coroutine.uc_stack.ss_size = size;
    coroutine.uc_link = &main;
    makecontext(
        &coroutine,
        [] {
            [] {
                alignas(4096) int host[count];
                std::printf("%d\n", download(host, 6) == host);
            }();
            std::printf("%d\n", depth_of_calls(600));
        },
        0);
    swapcontext(&main, &coroutine);
}

/* By a thread that never called CUDA, long after. */
void result_is_read_by_another_thread()
{
    int *host = download(on_host(), 7);
    std::thread([host] { std::printf("%d\n", sum(host)); }).join();
}

} // namespace

#endif

/* edges SCENE: one situation each in which a correction could be noticed; prints what the program sees. */
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <cuda.h>

#include "portable_kernel.h"

static void require(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::printf("%s: %s\n", what, cudaGetErrorName(error));
    std::exit(1);
}
#define REQUIRE(call) require(call, #call)

/* Lasts 20 ms by configuration. */
__global__ void fill(int *to, int value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = value + i;
}
PORTABLE_KERNEL(fill);

namespace
{

constexpr int count = 65536;
constexpr std::size_t bytes = count * sizeof(int);

int *on_device(std::size_t size = bytes)
{
    int *pointer = nullptr;
    REQUIRE(cudaMalloc(reinterpret_cast<void **>(&pointer), size));
    return pointer;
}

/* So large that the C library gives it pages of its own. */
int *on_host()
{
    int *memory = static_cast<int *>(std::malloc(bytes));
    std::memset(memory, 0xff, bytes);
    return memory;
}

void start_fill(int *to, int value)
{
    LAUNCH(fill, dim3(count / 256), dim3(256), 0, nullptr, to, value, count);
}

int sum(const int *values)
{
    unsigned result = 0;
    for (int i = 0; i < count; ++i)
        result += static_cast<unsigned>(values[i]);
    return static_cast<int>(result);
}

/* A result under way to `host`. */
int *download(int *host, int value)
{
    static int *device = on_device();
    start_fill(device, value);
    REQUIRE(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    return host;
}

void memory_runs_out()
{
    for (int turn = 0; turn < 3; ++turn) {
        int *first = on_device(20 << 20), *second = on_device(20 << 20);
        REQUIRE(cudaMemset(first, turn, 20 << 20));
        REQUIRE(cudaFree(first));
        REQUIRE(cudaFree(second));
        int *large = on_device(50 << 20);
        REQUIRE(cudaFree(large));
    }
    void *too_large = nullptr;
    std::printf("200 MiB: %s\n", cudaGetErrorName(cudaMalloc(&too_large, 200 << 20)));
}

void sizes_change()
{
    std::size_t at_start, now, total;
    int *kept = on_device();
    REQUIRE(cudaMemGetInfo(&at_start, &total));
    for (int turn = 0; turn < 40; ++turn) {
        int *block = on_device(std::size_t(turn % 7 + 1) * 100'000 - turn * 512);
        REQUIRE(cudaMemGetInfo(&now, &total));
        std::printf("%zu\n", at_start - now);
        REQUIRE(cudaFree(block));
        REQUIRE(cudaMemGetInfo(&now, &total));
        std::printf("%zu\n", at_start - now);
    }
    REQUIRE(cudaFree(kept));
}

void *driver(const char *name)
{
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name);
}

void sizes_are_told()
{
    auto range =
        reinterpret_cast<CUresult (*)(CUdeviceptr *, std::size_t *, CUdeviceptr)>(driver("cuMemGetAddressRange_v2"));
    for (int size : {100'000, 96'000, 98'000, 99'999}) {
        int *block = on_device(std::size_t(size));
        CUdeviceptr base;
        std::size_t found;
        CUresult result = range(&base, &found, reinterpret_cast<CUdeviceptr>(block) + 1000);
        std::printf("%d: %d %zu %d\n", size, result, found, base == reinterpret_cast<CUdeviceptr>(block));
        REQUIRE(cudaFree(block));
    }
}

void freed_twice()
{
    int *block = on_device();
    REQUIRE(cudaFree(block));
    std::printf("again: %s\n", cudaGetErrorName(cudaFree(block)));
    std::printf("inside: %s\n", cudaGetErrorName(cudaFree(on_device() + 1)));
    std::printf("nothing: %s\n", cudaGetErrorName(cudaFree(nullptr)));
}

void event_times()
{
    int *block = on_device();
    cudaEvent_t first, second;
    REQUIRE(cudaEventCreate(&first));
    REQUIRE(cudaEventCreate(&second));
    REQUIRE(cudaEventRecord(first));
    start_fill(block, 1);
    REQUIRE(cudaEventRecord(second));
    REQUIRE(cudaDeviceSynchronize());
    float milliseconds = -1;
    std::printf("%s\n", cudaGetErrorName(cudaEventElapsedTime(&milliseconds, first, second)));
    std::printf("%d\n", milliseconds > 10);
    start_fill(block, 2);
    REQUIRE(cudaEventRecord(second));
    REQUIRE(cudaEventSynchronize(second));
    std::printf("%s\n", cudaGetErrorName(cudaEventQuery(second)));
}

void host_functions()
{
    int *block = on_device();
    static volatile int seen = 0;
    start_fill(block, 1);
    REQUIRE(cudaLaunchHostFunc(nullptr, [](void *) { seen = 42; }, nullptr));
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", seen);
}

void managed_memory()
{
    int *memory = nullptr;
    REQUIRE(cudaMallocManaged(reinterpret_cast<void **>(&memory), bytes));
    start_fill(memory, 3);
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", sum(memory));
}

void mapped_memory()
{
    int *memory = nullptr, *alias = nullptr;
    REQUIRE(cudaHostAlloc(reinterpret_cast<void **>(&memory), bytes, cudaHostAllocMapped));
    REQUIRE(cudaHostGetDevicePointer(reinterpret_cast<void **>(&alias), memory, 0));
    int *freed = on_device();
    start_fill(alias, 5);
    REQUIRE(cudaFree(freed));
    std::printf("%d\n", sum(memory));
}

void unified_addresses()
{
    int *memory = nullptr;
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&memory), bytes));
    start_fill(memory, 7);
    REQUIRE(cudaDeviceSynchronize());
    std::printf("%d\n", sum(memory));
}

void source_is_overwritten()
{
    int *host = nullptr, *block = on_device();
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&host), bytes));
    for (int turn = 0; turn < 3; ++turn) {
        for (int i = 0; i < count; ++i)
            host[i] = turn * i;
        start_fill(block, 1);
        REQUIRE(cudaMemcpy(block, host, bytes, cudaMemcpyHostToDevice));
        std::memset(host, 0, bytes);
        REQUIRE(cudaMemcpy(host, block, bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(host));
    }
}

int *pinned(std::size_t size = bytes)
{
    int *memory = nullptr;
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&memory), size));
    return memory;
}

/* The program's own asynchronous transfers: their waits go, and the CPU waits where it touches the memory. */
void transfers_under_way()
{
    int *source = pinned(), *result = pinned(), *block = on_device(), *other = on_device();
    cudaStream_t stream;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int turn = 0; turn < 3; ++turn) {
        for (int i = 0; i < count; ++i)
            source[i] = turn * i;
        LAUNCH(fill, dim3(count / 256), dim3(256), 0, stream, other, turn, count);
        REQUIRE(cudaMemcpyAsync(block, source, bytes, cudaMemcpyHostToDevice, stream));
        REQUIRE(cudaStreamSynchronize(stream));
        std::printf("%d\n", sum(source));
        source[turn] = -1;
        REQUIRE(cudaMemcpyAsync(result, block, bytes, cudaMemcpyDeviceToHost, stream));
        REQUIRE(cudaStreamSynchronize(stream));
        std::printf("%d\n", sum(result));
        REQUIRE(cudaMemcpyAsync(result, other, bytes / 2, cudaMemcpyDeviceToHost, stream));
        REQUIRE(cudaMemcpyAsync(source + 100, result + count / 2, 4000, cudaMemcpyHostToHost, stream));
        REQUIRE(cudaDeviceSynchronize());
        std::printf("%d %d\n", sum(result), source[100]);
    }
    REQUIRE(cudaStreamDestroy(stream));
}

/* Memory goes that transfers still work on, from its middle, and its addresses are taken again. */
void freed_under_way()
{
    int *block = on_device();
    for (int turn = 0; turn < 4; ++turn) {
        int *memory = pinned(4 * bytes);
        start_fill(block, turn);
        REQUIRE(cudaMemcpyAsync(memory + 2 * count, block, bytes, cudaMemcpyDeviceToHost, nullptr));
        REQUIRE(cudaDeviceSynchronize());
        if (turn % 2)
            std::printf("%d\n", sum(memory + 2 * count));
        REQUIRE(cudaFreeHost(memory));
        int *again = on_host();
        std::printf("%d\n", sum(again));
        std::free(again);
    }
}

/* Two threads hand a pinned buffer over; only waits for all work keep it whole. */
void handed_over()
{
    int *memory = pinned(), *block = on_device();
    for (int turn = 0; turn < 4; ++turn) {
        start_fill(block, turn);
        REQUIRE(cudaMemcpyAsync(memory, block, bytes, cudaMemcpyDeviceToHost, nullptr));
        REQUIRE(cudaStreamSynchronize(nullptr));
        std::thread([memory] {
            std::printf("%d\n", sum(memory));
            std::memset(memory, 0, bytes);
        }).join();
        int ends[2], fetched = 0;
        REQUIRE(cudaMemcpyAsync(memory, block, bytes, cudaMemcpyDeviceToHost, nullptr));
        REQUIRE(cudaStreamSynchronize(nullptr));
        if (pipe(ends) != 0 || write(ends[1], memory + 7, sizeof fetched) != sizeof fetched ||
            read(ends[0], &fetched, sizeof fetched) != sizeof fetched)
            std::exit(1);
        close(ends[0]);
        close(ends[1]);
        std::printf("%d\n", fetched);
    }
}

void contents_come_back()
{
    int *host = on_host(), *block = on_device();
    for (int turn = 0; turn < 6; ++turn) {
        for (int i = 0; i < count; ++i)
            host[i] = turn % 2 + i;
        REQUIRE(cudaMemcpy(block, host, bytes, cudaMemcpyHostToDevice));
        if (turn > 2)
            start_fill(block, turn); /* the destination holds something else then */
        if (turn > 3)
            REQUIRE(cudaMemcpy(block, host, bytes, cudaMemcpyHostToDevice));
        std::printf("%d\n", sum(download(on_host(), 0)));
        REQUIRE(cudaMemcpy(host, block, bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(host));
    }
}

void contents_are_there()
{
    int *host = on_host(), *block = on_device(), *other = on_device();
    auto upload = [](int *to, const int *from) { REQUIRE(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice)); };
    auto show = [&](const int *device) {
        int *copy = on_host();
        REQUIRE(cudaMemcpy(copy, device, bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(copy));
    };
    for (int turn = 0; turn < 4; ++turn) {
        upload(block, host);
        upload(other, host);
    }
    show(block);
    REQUIRE(cudaMemcpy(block + 1, host, bytes / 2, cudaMemcpyHostToDevice)); /* overlaps */
    host[0] = 5;
    upload(other, host);
    show(other);
    host[0] = -1;
    upload(block, host);
    show(block);
    start_fill(block, 3);
    upload(block, host);
    REQUIRE(cudaMemsetAsync(block, 1, 16));
    upload(block, host);
    show(block);
    upload(block, host);
    REQUIRE(cudaMemcpyAsync(block, other, 16, cudaMemcpyDeviceToDevice));
    upload(block, host);
    show(block);
}

void result_is_read()
{
    int *host = on_host();
    for (int turn = 0; turn < 3; ++turn)
        std::printf("%d\n", sum(download(host, turn)));
    int *pinned = nullptr;
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&pinned), bytes));
    std::printf("%d\n", sum(download(pinned, 9)));
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
    long written;
    __asm__ volatile("mov $1, %%eax\n\tsyscall" /* write */
                     : "=a"(written)
                     : "D"(ends[1]), "S"(host), "d"(2 * sizeof *host)
                     : "rcx", "r11", "memory");
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

void result_is_shared()
{
    void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        volatile int *values = static_cast<int *>(pages);
        while (values[count - 1] == 0)
            usleep(1000);
        _exit(values[0]);
    }
    download(static_cast<int *>(pages), 6);
    int status;
    waitpid(child, &status, 0);
    std::printf("%d\n", WEXITSTATUS(status));
}

void child_reads()
{
    int *host = download(on_host(), 2);
    pid_t child = fork();
    if (child == 0)
        _exit(sum(host) & 0x7f);
    int status;
    waitpid(child, &status, 0);
    std::printf("%d %d\n", WIFEXITED(status), WEXITSTATUS(status) == (sum(host) & 0x7f));
}

int *left_behind;

void reads_at_exit()
{
    std::atexit([] { std::printf("%d\n", sum(left_behind)); });
    left_behind = download(on_host(), 8);
    std::exit(0);
}

void own_handler()
{
    int *host = download(on_host(), 1);
    struct sigaction action = {};
    action.sa_handler = [](int) {
        const char text[] = "fault\n";
        if (write(1, text, sizeof text - 1) < 0)
            _exit(4);
        _exit(3);
    };
    sigaction(SIGSEGV, &action, nullptr);
    std::printf("%d\n", sum(host));
    std::printf("%d\n", sum(download(host, 2)));
    std::fflush(stdout);
    *static_cast<volatile int *>(nullptr) = 1;
}

/* Ends as a program does whose fault is its own, though another result is late. */
void fault_of_its_own()
{
    download(on_host(), 1);
    *static_cast<volatile int *>(nullptr) = 1;
}

void signal_from_outside()
{
    download(on_host(), 1);
    kill(getpid(), SIGSEGV);
    std::printf("not reached\n");
}

void blocked_signals()
{
    int *host = on_host();
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, nullptr, 2);
    std::thread reader([&] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        pthread_barrier_wait(&barrier);
        std::printf("%d\n", sum(host));
    });
    download(host, 3);
    pthread_barrier_wait(&barrier);
    reader.join();
}

void starts_again()
{
    for (int turn = 0; turn < 2; ++turn) {
        int *block = on_device(), *host = on_host();
        start_fill(block, turn);
        REQUIRE(cudaMemcpy(host, block, bytes, cudaMemcpyDeviceToHost));
        REQUIRE(cudaFree(block));
        std::size_t now, total;
        REQUIRE(cudaMemGetInfo(&now, &total));
        std::printf("%d %d\n", sum(host), now == total);
        REQUIRE(cudaDeviceReset());
    }
}

void two_contexts()
{
    auto create =
        reinterpret_cast<CUresult (*)(CUcontext *, CUctxCreateParams *, unsigned, CUdevice)>(driver("cuCtxCreate_v4"));
    int *block = on_device();
    CUcontext context;
    std::printf("%d\n", create(&context, nullptr, 0, 0));
    for (int turn = 0; turn < 3; ++turn) {
        int *other = on_device();
        start_fill(other, turn);
        int *host = on_host();
        REQUIRE(cudaMemcpy(host, other, bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(host));
        REQUIRE(cudaFree(other));
    }
    (void)block;
}

void threads_at_once()
{
    int sums[4] = {};
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number)
        threads.emplace_back([number, &sums] {
            cudaStream_t stream = nullptr;
            if (number > 1)
                REQUIRE(cudaStreamCreateWithFlags(&stream, number == 2 ? cudaStreamDefault : cudaStreamNonBlocking));
            int *host = on_host();
            for (int turn = 0; turn < 8; ++turn) {
                int *first = on_device(), *second = on_device();
                LAUNCH(fill, dim3(count / 256), dim3(256), 0, stream, first, number + turn, count);
                REQUIRE(number % 2 ? cudaDeviceSynchronize() : cudaStreamSynchronize(stream));
                REQUIRE(cudaMemcpy(host, first, bytes, cudaMemcpyDeviceToHost));
                host[turn] = turn;
                REQUIRE(cudaMemcpy(second, host, bytes, cudaMemcpyHostToDevice));
                REQUIRE(cudaFree(first));
                REQUIRE(cudaMemcpy(host, second, bytes, cudaMemcpyDeviceToHost));
                sums[number] += sum(host);
                REQUIRE(cudaFree(second));
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    for (int result : sums)
        std::printf("%d\n", result);
}

const struct {
    const char *name;
    void (*play)();
} scenes[] = {
    {"memory_runs_out", memory_runs_out},
    {"sizes_change", sizes_change},
    {"sizes_are_told", sizes_are_told},
    {"freed_twice", freed_twice},
    {"event_times", event_times},
    {"host_functions", host_functions},
    {"managed_memory", managed_memory},
    {"mapped_memory", mapped_memory},
    {"unified_addresses", unified_addresses},
    {"source_is_overwritten", source_is_overwritten},
    {"transfers_under_way", transfers_under_way},
    {"freed_under_way", freed_under_way},
    {"handed_over", handed_over},
    {"contents_come_back", contents_come_back},
    {"contents_are_there", contents_are_there},
    {"result_is_read", result_is_read},
    {"result_is_overwritten", result_is_overwritten},
    {"result_is_on_the_stack", result_is_on_the_stack},
    {"result_is_written", result_is_written},
#ifdef RAW_SYSTEM_CALLS
    {"result_is_written_raw", result_is_written_raw},
#endif
    {"result_is_read_over", result_is_read_over},
    {"result_is_freed", result_is_freed},
    {"result_is_on_the_heap", result_is_on_the_heap},
    {"result_is_on_a_stack_from_the_heap", result_is_on_a_stack_from_the_heap},
    {"results_share_pages", results_share_pages},
    {"library_is_loaded", library_is_loaded},
    {"result_is_shared", result_is_shared},
    {"child_reads", child_reads},
    {"reads_at_exit", reads_at_exit},
    {"own_handler", own_handler},
    {"fault_of_its_own", fault_of_its_own},
    {"signal_from_outside", signal_from_outside},
    {"blocked_signals", blocked_signals},
    {"starts_again", starts_again},
    {"two_contexts", two_contexts},
    {"threads_at_once", threads_at_once},
};

} // namespace

int main(int argument_count, char **arguments)
{
    for (const auto &scene : scenes)
        if (argument_count > 1 && std::strcmp(arguments[1], scene.name) == 0) {
            REQUIRE(cudaFree(nullptr));
            scene.play();
            return 0;
        }
    return 2;
}

/* What a correction cannot see: who else uses memory, what a kernel keeps, which signals are blocked, and what lasts.
 */
#ifndef FFM_TEST_UNSEEN_SCENES_H
#define FFM_TEST_UNSEEN_SCENES_H

#include <atomic>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "scene.h"

__global__ void keep(int **place, int *address)
{
    *place = address;
}
PORTABLE_KERNEL(keep);

__global__ void fill_from_one(int *to, int value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i + 1] = value + i;
}
PORTABLE_KERNEL(fill_from_one);

namespace
{

/* Of two processes, one says by a pipe when the other may look. */
struct Line {
    int ends[2];
    Line()
    {
        if (pipe(ends) != 0)
            std::exit(1);
    }
    void say(const void *what = "", std::size_t size = 1) const
    {
        if (write(ends[1], what, size) != static_cast<ssize_t>(size))
            std::exit(1);
    }
};

void hear(int end, void *what, std::size_t size)
{
    if (read(end, what, size) != static_cast<ssize_t>(size))
        std::exit(1);
}

enum { FROM_OWNER = 100, TO_OWNER = 101 };

/* Another program reads device memory after a wait that its owner does not need itself. */
void memory_is_read_elsewhere()
{
    Line there, back;
    std::fflush(stdout);
    if (fork() == 0) {
        dup2(there.ends[0], FROM_OWNER);
        dup2(back.ends[1], TO_OWNER);
        execl("/proc/self/exe", "edges", "reads_elsewhere", nullptr);
        _exit(1);
    }
    auto share = reinterpret_cast<CUresult (*)(CUipcMemHandle *, CUdeviceptr)>(driver("cuIpcGetMemHandle"));
    int *block = on_device();
    CUipcMemHandle handle;
    char heard;
    std::printf("%d\n", share(&handle, reinterpret_cast<CUdeviceptr>(block)));
    std::fflush(stdout);
    there.say(&handle, sizeof handle);
    for (int turn = 0; turn < 3; ++turn) {
        start_fill(block, turn);
        REQUIRE(cudaDeviceSynchronize());
        there.say();
        hear(back.ends[0], &heard, 1);
    }
    wait(nullptr);
}

void reads_elsewhere()
{
    auto open =
        reinterpret_cast<CUresult (*)(CUdeviceptr *, CUipcMemHandle, unsigned)>(driver("cuIpcOpenMemHandle_v2"));
    CUipcMemHandle handle;
    CUdeviceptr block;
    int *host = on_host();
    char heard;
    hear(FROM_OWNER, &handle, sizeof handle);
    std::printf("%d\n", open(&block, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    for (int turn = 0; turn < 3; ++turn) {
        hear(FROM_OWNER, &heard, 1);
        REQUIRE(cudaMemcpy(host, reinterpret_cast<void *>(block), bytes, cudaMemcpyDeviceToHost));
        std::printf("%d\n", sum(host));
        std::fflush(stdout);
        if (write(TO_OWNER, "", 1) != 1)
            std::exit(1);
    }
}

/* Later kernels write host memory whose address they find on the device. */
void address_is_kept()
{
    int *memory = pinned(), **place = reinterpret_cast<int **>(on_device(sizeof *place));
    std::memset(memory, 0, bytes);
    LAUNCH(keep, dim3(1), dim3(1), 0, nullptr, place, memory);
    REQUIRE(cudaDeviceSynchronize());
    for (int turn = 0; turn < 3; ++turn) {
        LAUNCH(fill_through, dim3(count / 256), dim3(256), 0, nullptr, place, turn, count);
        REQUIRE(cudaDeviceSynchronize());
        std::printf("%d %d\n", memory[0], memory[count - 1]);
    }
}

/* Its kernels count from one. */
void address_is_before_the_block()
{
    int *memory = pinned(8 * bytes);
    std::memset(memory, 0, bytes);
    for (int turn = 0; turn < 3; ++turn) {
        LAUNCH(fill_from_one, dim3(count / 256), dim3(256), 0, nullptr, memory - 1, turn, count);
        REQUIRE(cudaDeviceSynchronize());
        std::printf("%d %d\n", memory[0], memory[count - 1]);
    }
}

/* The GPU uses the page tables of the CPU. */
void ordinary_memory()
{
    int *memory = on_host();
    for (int turn = 0; turn < 3; ++turn) {
        start_fill(memory, turn);
        REQUIRE(cudaDeviceSynchronize());
        std::printf("%d\n", sum(memory));
    }
}

int *awaited_result, result_in_handler;

/* While it waits, a handler reads a result, and all other signals are blocked. */
template <typename Wait> void read_during(Wait wait_with)
{
    struct sigaction action = {};
    action.sa_handler = [](int) { result_in_handler = sum(awaited_result); };
    sigaction(SIGUSR1, &action, nullptr);
    sigset_t usr1, others;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigfillset(&others);
    sigdelset(&others, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    awaited_result = download(on_host(), 1);
    raise(SIGUSR1);
    wait_with(&others);
    std::printf("%d\n", result_in_handler);
}

void handler_runs_in_sigsuspend()
{
    read_during([](const sigset_t *mask) { sigsuspend(mask); });
}

void handler_runs_in_poll()
{
    read_during([](const sigset_t *mask) { ppoll(nullptr, 0, nullptr, mask); });
}

void handler_runs_in_select()
{
    read_during([](const sigset_t *mask) { pselect(0, nullptr, nullptr, nullptr, nullptr, mask); });
}

void handler_runs_in_epoll()
{
    read_during([](const sigset_t *mask) {
        epoll_event event;
        epoll_pwait(epoll_create1(0), &event, 1, -1, mask);
    });
}

void thread_begins_with_signals_blocked()
{
    static std::atomic<bool> over{false};
    pthread_attr_t attributes;
    pthread_t reader;
    sigset_t all;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setsigmask_np(&attributes, &all);
    int *host = on_host();
    pthread_create(
        &reader, &attributes,
        [](void *memory) -> void * {
            while (!over)
                usleep(1000);
            std::printf("%d\n", sum(static_cast<int *>(memory)));
            return nullptr;
        },
        host);
    download(host, 3);
    over = true;
    pthread_join(reader, nullptr);
}

/* A program is told of signals what it asked for. */
void asks_about_signals()
{
    sigset_t all, none, now;
    sigfillset(&all);
    sigemptyset(&none);
    struct sigaction action = {}, found;
    download(on_host(), 1);
    sigaction(SIGSEGV, nullptr, &found);
    std::printf("%d %d\n", found.sa_handler == SIG_DFL, found.sa_flags);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    sigprocmask(SIG_SETMASK, &none, &now);
    std::printf("%d", sigismember(&now, SIGSEGV));
    sigprocmask(SIG_SETMASK, nullptr, &now);
    std::printf("%d\n", sigismember(&now, SIGSEGV));
    action.sa_handler = [](int) {};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, nullptr);
    action.sa_mask = none;
    sigaction(SIGUSR1, &action, &found);
    std::printf("%d", sigismember(&found.sa_mask, SIGSEGV));
    sigaction(SIGUSR1, nullptr, &found);
    std::printf("%d\n", sigismember(&found.sa_mask, SIGSEGV));
    std::printf("%d\n", signal(SIGSEGV, SIG_IGN) == SIG_DFL);
}

/* The kernel writes beside a result, in a call that began before the download. */
void read_is_under_way()
{
    struct Block {
        int values[count - 100];
        char text[100];
    };
    static Block *block = reinterpret_cast<Block *>(on_host());
    static const Line line;
    int *device = on_device();
    for (int turn = 0; turn < 3; ++turn) {
        std::thread reader([] {
            ssize_t length = read(line.ends[0], block->text, sizeof block->text);
            std::printf("%zd %s\n", length, length > 0 ? block->text : std::strerror(errno));
        });
        usleep(30000);
        start_fill(device, turn);
        REQUIRE(cudaMemcpy(block->values, device, sizeof block->values, cudaMemcpyDeviceToHost));
        line.say("spoken", 7);
        reader.join();
        std::printf("%d\n", block->values[7]);
    }
}

void numbers_files()
{
    int before = open("/dev/null", O_RDONLY);
    download(on_host(), 1);
    std::printf("%d\n", open("/dev/null", O_RDONLY) - before);
}

/* What it never touches should take no memory. */
void sparse_memory()
{
    constexpr std::size_t size = std::size_t(256) << 20;
    static int ends_at;
    download(on_host(), 1);
    rusage before, after;
    char *memory = static_cast<char *>(std::malloc(size / 64));
    std::memset(memory, 1, size / 64);
    std::free(memory);
    getrusage(RUSAGE_SELF, &before);
    memory = static_cast<char *>(std::calloc(size, 1));
    for (std::size_t at = 0; at < size; at += size / 64)
        ends_at += memory[at];
    getrusage(RUSAGE_SELF, &after);
    std::printf("%d %d\n", ends_at, after.ru_minflt - before.ru_minflt > 10000);
}

/* A graph uses memory that is gone: its context can do no more. */
void work_fails()
{
    int *source = on_device(), *block;
    std::size_t pitch;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    REQUIRE(cudaFree(on_device()));
    REQUIRE(cudaStreamCreate(&stream));
    REQUIRE(cudaMallocPitch(reinterpret_cast<void **>(&block), &pitch, bytes, 1)); /* which no pool serves */
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    REQUIRE(cudaMemcpyAsync(block, source, bytes, cudaMemcpyDeviceToDevice, stream));
    REQUIRE(cudaStreamEndCapture(stream, &graph));
    REQUIRE(cudaGraphInstantiate(&ready, graph, 0));
    REQUIRE(cudaFree(block));
    REQUIRE(cudaGraphLaunch(ready, stream));
    usleep(50000);
    for (int turn = 0; turn < 3; ++turn) {
        std::printf("%s ", cudaGetErrorName(cudaFree(source)));
        std::printf("%s ", cudaGetErrorName(cudaMalloc(reinterpret_cast<void **>(&block), bytes)));
        std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    }
}

} // namespace

#endif

/* Other processes, signals, and the end. */
#ifndef FFM_TEST_PROCESS_SCENES_H
#define FFM_TEST_PROCESS_SCENES_H

#include <atomic>
#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "scene.h"

namespace
{

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

/* What a child should read is on the last page of a result. */
void command_is_beside_a_result()
{
    char *memory = reinterpret_cast<char *>(on_host());
    int *device = on_device();
    std::strcpy(memory + bytes - 100, "echo spoken");
    start_fill(device, 1);
    REQUIRE(cudaMemcpy(memory, device, bytes - 200, cudaMemcpyDeviceToHost));
    std::fflush(stdout);
    std::printf("%d\n", std::system(memory + bytes - 100));
}

/* The handler could not be interrupted by its own fault. */
void handler_blocks_all_signals()
{
    static int *host, result;
    struct sigaction action = {};
    action.sa_handler = [](int) { result = sum(host); };
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, nullptr);
    host = download(on_host(), 5);
    raise(SIGUSR1);
    std::printf("%d\n", result);
}

/* Of seven arguments in C, the last is on the stack. */
void system_call_has_six_arguments()
{
    constexpr std::size_t page = 4096;
    download(on_host(), 1);
    int file = memfd_create("pages", 0);
    if (ftruncate(file, 2 * page) != 0 || pwrite(file, "second", 7, page) != 7)
        std::exit(1);
    long mapped = syscall(SYS_mmap, nullptr, page, PROT_READ, MAP_PRIVATE, file, page);
    std::printf("%s\n", mapped == -1 ? std::strerror(errno) : reinterpret_cast<const char *>(mapped));
}

int forks;

/* A child may look at what another thread of its parent was just downloading, and give memory back. */
void forks_beside_downloads()
{
    static volatile bool over = false;
    static std::atomic<int> downloaded{0};
    static int *host = on_host();
    std::thread downloads([] {
        for (; !over || downloaded < 8; ++downloaded)
            download(host, 1);
    });
    std::thread maps([] {
        while (!over)
            std::free(on_host());
    });
    int ended = 0;
    while (downloaded < 2)
        usleep(1000);
    for (int number = 0; number < forks; ++number) {
        usleep(3000);
        pid_t child = fork();
        if (child == 0) {
            std::free(on_host());
            _exit(static_cast<volatile int *>(host)[count - 1] == 0);
        }
        int status;
        waitpid(child, &status, 0);
        ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    over = true;
    downloads.join();
    maps.join();
    std::printf("%d\n", ended);
}

} // namespace

#endif

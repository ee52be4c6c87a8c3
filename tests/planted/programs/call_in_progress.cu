// A system call of another thread uses the page of a result, and began before the program waited for that.
// variants: reads, receives, ends, sleeps, looks, many
#include "planted.h"

#include <atomic>
#include <linux/futex.h>
#include <signal.h>
#include <sys/msg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

constexpr int beside = 512, downloads = 100;

static int *result, *device; /* on a page with the call's memory, behind it */

static std::atomic<bool> over{false};

static long futex(int *word, int call, int value)
{
    return syscall(SYS_futex, word, call | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

/* The thread is in its call by the time that the program waits, and the call ends later. */
template <typename Call, typename End> static void blocked(Call call, End end)
{
    long answer = -1;
    std::thread caller([&] { answer = call(result + beside); });
    usleep(50000);
    fill(device, 1, 7);
    DOWNLOAD_ASYNC(result, device, sizeof(int));
    // sync: reads, receives, ends, sleeps required (undecidable) or unnecessary, looks, many absent
    WAIT(blocked, cudaStreamSynchronize(nullptr));
    end(caller.native_handle());
    caller.join();
    expect("answer", answer, sizeof(int));
}

static void reads()
{
    int ends[2], sent = 3;
    check(static_cast<cudaError_t>(pipe(ends)));
    blocked([&](int *memory) { return read(ends[0], memory, sizeof(int)); },
            [&](pthread_t) { expect("sent", write(ends[1], &sent, sizeof sent), sizeof sent); });
    expect("read", result[beside], 3);
}

static void receives()
{
    struct {
        long type;
        int word;
    } sent = {1, 3};
    const int queue = msgget(IPC_PRIVATE, 0600);
    blocked([&](int *memory) { return msgrcv(queue, memory, sizeof(int), 0, 0); },
            [&](pthread_t) { expect("sent", msgsnd(queue, &sent, sizeof(int), 0), 0); });
    msgctl(queue, IPC_RMID, nullptr);
    expect("received", result[beside + 2], 3);
}

static void ends()
{
    int pipe_ends[2];
    check(static_cast<cudaError_t>(pipe(pipe_ends)));
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(pipe_ends[1]);
        _exit(read(pipe_ends[0], &byte, 1) == 0 ? 5 : 1);
    }
    blocked([&](int *memory) { return waitpid(child, memory, 0) == child ? long(sizeof(int)) : -1; },
            [&](pthread_t) { close(pipe_ends[1]); });
    expect("status", WEXITSTATUS(result[beside]), 5);
}

/* A signal begins the call again, which looks at its word once more. */
static void sleeps()
{
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    blocked([&](int *memory) { return futex(memory, FUTEX_WAIT, 0) == 0 ? long(sizeof(int)) : -errno; },
            [&](pthread_t caller) {
                pthread_kill(caller, SIGUSR1);
                usleep(50000);
                for (int tries = 0; tries < 5000 && futex(result + beside, FUTEX_WAKE, 1) == 0; tries++)
                    usleep(1000); /* it may have come back with an error */
            });
}

/* As often as possible, while results come. */
template <typename Call> static void often(Call call)
{
    long refused = 0;
    std::thread caller([&] {
        while (!over)
            refused += call(result + beside) < 0 && errno == EFAULT;
    });
    for (int number = 0; number < downloads; number++) {
        fill(device, 1, number + 1);
        DOWNLOAD_ASYNC(result, device, sizeof(int));
        // sync: looks, many required (undecidable) or unnecessary, reads, receives, ends, sleeps absent
        check(cudaStreamSynchronize(nullptr));
    }
    over = true;
    caller.join();
    expect("refused", refused, 0);
}

void program()
{
    device = device_integers(1);
    result = pinned_integers(2 * beside);
    if (variant("reads"))
        reads();
    else if (variant("receives"))
        receives();
    else if (variant("ends"))
        ends();
    else if (variant("sleeps"))
        sleeps();
    else if (variant("looks"))
        often([](int *memory) { return futex(memory, FUTEX_WAIT, 1); });
    else
        often([](int *memory) { return getcwd(reinterpret_cast<char *>(memory), 1024) != nullptr ? 0 : -1; });
}

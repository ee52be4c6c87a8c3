// A thread that is cancelled runs its destructors and clean-up functions, wherever it waited. These look at the
// download of the first turn, and not at that of the second.
// variants: all
#include "planted.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

constexpr int count = 4096;

enum class At { pause, condition, read, semaphore, test, sleep, busy_read, poll, last };

static const int *looked_at;
static long long seen, cleaned;
static sem_t ready;
static int pipes[2];

struct Looks {
    ~Looks()
    {
        seen = sum(looked_at, looked_at == nullptr ? 0 : count);
    }
};

static void clean(void *)
{
    ++cleaned;
}

static void stay(At at)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pollfd polled = {pipes[0], POLLIN, 0};
    sem_t never;
    char byte;
    sem_init(&never, 0, 0);
    pthread_mutex_lock(&mutex);
    while (true)
        switch (at) {
        case At::pause:
            pause();
            break;
        case At::condition:
            pthread_cond_wait(&condition, &mutex);
            break;
        case At::read:
            expect("read", read(pipes[0], &byte, 1), 1);
            break;
        case At::semaphore:
            sem_wait(&never);
            break;
        case At::test:
            pthread_testcancel();
            break;
        case At::sleep:
            usleep(100);
            break;
        case At::busy_read:
            (void)!pread(pipes[0], &byte, 0, 0);
            break;
        default:
            poll(&polled, 1, 0);
            break;
        }
}

static void *run(void *at)
{
    Looks looks;
    pthread_cleanup_push(clean, nullptr);
    sem_post(&ready);
    stay(*static_cast<At *>(at));
    pthread_cleanup_pop(0);
    return nullptr;
}

static void cancel_one(At at, bool looks, const int *host)
{
    pthread_t thread;
    void *result;
    looked_at = looks ? host : nullptr;
    pthread_create(&thread, nullptr, run, &at);
    sem_wait(&ready);
    if (static_cast<int>(at) % 2 == 0) /* surely where it stays */
        usleep(5000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    expect("cancelled", result == PTHREAD_CANCELED, true);
}

void program()
{
    int *device = device_integers(count);
    expect("pipe", pipe(pipes), 0);
    sem_init(&ready, 0, 0);
    for (int at = 0; at < static_cast<int>(At::last); ++at) {
        int *host = pinned_integers(count);
        fill(device, count, 7);
        DOWNLOAD_ASYNC(host, device, count * sizeof(int));
        WAIT(looked, cudaStreamSynchronize(nullptr)); // sync: required
        cancel_one(static_cast<At>(at), true, host);
        expect("seen", seen, 7 * count);

        host = pinned_integers(count);
        fill(device, count, 8);
        DOWNLOAD_ASYNC(host, device, count * sizeof(int));
        WAIT(not_looked, cudaStreamSynchronize(nullptr)); // sync: unnecessary
        cancel_one(static_cast<At>(at), false, host);
        settle();
    }
    expect("cleaned", cleaned, 2 * static_cast<int>(At::last));
}

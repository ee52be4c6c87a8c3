/* One thread holds a lock of each kind in turn, or lets the other one wait for it in another way, for a known time.
 *
 * Argument: the milliseconds. The holder begins to count when the other thread sleeps, so that this one waits at least
 * as long, however busy the machine is. */
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <semaphore.h>
#include <thread>
#include <unistd.h>

#include <cuda_runtime_api.h>

static double milliseconds;
static pid_t waiter;
static std::atomic<int> turn{0};
static int *device;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool happened;
static sem_t semaphore;
static pthread_barrier_t barrier;

static bool sleeps(pid_t thread)
{
    char name[64], state = 0;
    std::snprintf(name, sizeof name, "/proc/self/task/%d/stat", static_cast<int>(thread));
    FILE *file = std::fopen(name, "r");
    if (file == nullptr || std::fscanf(file, "%*d %*s %c", &state) != 1)
        std::abort();
    std::fclose(file);
    return state == 'S';
}

__attribute__((noinline)) static void keep_waiting(double factor = 1)
{
    while (!sleeps(waiter))
        ;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(factor * milliseconds);
    while (std::chrono::steady_clock::now() < end)
        ;
}

static void use_gpu()
{
    cudaMemset(device, 0, sizeof *device);
}

static void happens()
{
    pthread_mutex_lock(&mutex);
    happened = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
}

/* Both threads come to turn `number`. */
static void meet(int number)
{
    turn++;
    while (turn < 2 * number)
        std::this_thread::yield();
}

static void holder()
{
    use_gpu();
    pthread_mutex_lock(&mutex);
    meet(1);
    keep_waiting();
    pthread_mutex_unlock(&mutex);
    use_gpu();
    pthread_rwlock_wrlock(&shared_lock);
    meet(2);
    keep_waiting();
    pthread_rwlock_unlock(&shared_lock);
    use_gpu();
    meet(3);
    keep_waiting();
    happens();
    use_gpu();
    meet(4);
    keep_waiting(3);
    happens();
    use_gpu();
    meet(5);
    keep_waiting();
    sem_post(&semaphore);
    use_gpu();
    meet(6);
    keep_waiting();
    pthread_barrier_wait(&barrier);
    use_gpu();
}

static void wait_for_condition(bool for_a_while)
{
    pthread_mutex_lock(&mutex);
    while (!happened) {
        timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += static_cast<long>(milliseconds * 1e6);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (for_a_while)
            pthread_cond_timedwait(&condition, &mutex, &until);
        else
            pthread_cond_wait(&condition, &mutex);
    }
    happened = false;
    pthread_mutex_unlock(&mutex);
}

int main(int, char **arguments)
{
    milliseconds = std::atof(arguments[1]);
    waiter = gettid();
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&barrier, nullptr, 2);
    cudaMalloc(reinterpret_cast<void **>(&device), sizeof *device);
    std::thread other(holder);
    meet(1);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    use_gpu();
    meet(2);
    pthread_rwlock_rdlock(&shared_lock);
    pthread_rwlock_unlock(&shared_lock);
    use_gpu();
    meet(3);
    wait_for_condition(false);
    use_gpu();
    meet(4);
    wait_for_condition(true);
    use_gpu();
    meet(5);
    sem_wait(&semaphore);
    use_gpu();
    meet(6);
    pthread_barrier_wait(&barrier);
    use_gpu();
    other.join();
    return 0;
}

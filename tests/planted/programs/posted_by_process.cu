// A thread waits for a first result, has another process say so by a semaphore, waits for a second one, and posts the
// semaphore as well. The reader, which looks later, may follow the other process: it relies on the first wait. Where
// nobody else can post the semaphore, it follows the second.
// variants: shared, named, own
#include "planted.h"

#include <chrono>
#include <fcntl.h>
#include <semaphore.h>
#include <string>
#include <sys/wait.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int ends[2];

static sem_t *semaphore()
{
    if (variant("named")) {
        const std::string name = "/planted-" + std::to_string(getpid());
        sem_t *opened = sem_open(name.c_str(), O_CREAT | O_EXCL, 0600, 0);
        sem_unlink(name.c_str());
        return opened;
    }
    void *memory = mmap(nullptr, sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(static_cast<sem_t *>(memory), variant("shared"), 0);
    return static_cast<sem_t *>(memory);
}

static pid_t process_that_posts(sem_t *ready)
{
    const pid_t child = fork();
    if (child != 0)
        return child;
    char letter = 0;
    if (read(ends[0], &letter, 1) == 1)
        sem_post(ready);
    _exit(0);
}

void program()
{
    int *first = pinned_integers(count), *second = pinned_integers(count);
    int *device = device_integers(2 * count);
    sem_t *ready = semaphore();
    expect("pipe", pipe(ends), 0);
    const pid_t child = variant("own") ? 0 : process_that_posts(ready);
    std::thread reader([&] {
        if (!planted::proving()) /* until both have posted it */
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 1200 : 150));
        sem_wait(ready);
        expect("first", sum(first, count), 7 * count);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(first, device, bytes);
    // sync: shared, named required, own conditionally unnecessary (keep for_second)
    WAIT(for_first, cudaStreamSynchronize(nullptr));
    expect("said", write(ends[1], "", 1), 1);
    add_slowly(device + count, device, count);
    DOWNLOAD_ASYNC(second, device + count, bytes);
    WAIT(for_second, cudaStreamSynchronize(nullptr)); // sync: required
    sem_post(ready);
    expect("second", sum(second, count), 8 * count);
    reader.join();
    if (child != 0)
        waitpid(child, nullptr, 0);
}

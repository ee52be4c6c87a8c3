// The result is read only after `program`: by a function of atexit or on_exit, by the destructor of a static or
// thread-local object, or by that of a thread's key.
// variants: atexit, on_exit, static, thread_local, key, never
#include "planted.h"

#include <pthread.h>
#include <thread>

constexpr int count = 16384;
constexpr size_t bytes = count * sizeof(int);

static int *host;

static void read_now()
{
    expect("sum", sum(host, count), 7LL * count);
    std::fflush(stdout);
    if (planted::failed())
        _exit(1);
}

struct Reader {
    bool reads = false;
    ~Reader()
    {
        if (reads)
            read_now();
    }
};

static Reader of_program;
static thread_local Reader of_thread;

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    pthread_key_t key;
    if (variant("atexit"))
        std::atexit(read_now);
    if (variant("on_exit"))
        on_exit([](int, void *) { read_now(); }, nullptr);
    of_program.reads = variant("static");
    auto download = [&] {
        fill(device, count, 7);
        DOWNLOAD_ASYNC(host, device, bytes);
        // sync: atexit, on_exit, static, thread_local, key required, never unnecessary
        WAIT(last, cudaStreamSynchronize(cudaStreamLegacy));
    };
    if (variant("thread_local") || variant("key")) {
        std::thread([&] {
            of_thread.reads = variant("thread_local");
            if (variant("key")) {
                pthread_key_create(&key, [](void *) { read_now(); });
                pthread_setspecific(key, host);
            }
            download();
        }).join();
    } else {
        download();
    }
}

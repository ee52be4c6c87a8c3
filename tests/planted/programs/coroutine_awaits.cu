// Coroutines wait for events of their own streams, and are resumed by a loop; they read what came, or drop it.
// variants: reads, drops
#include "planted.h"
#include <coroutine>
#include <deque>
constexpr int count = 4096;
struct Task {
    struct promise_type {
        Task get_return_object()
        {
            return {};
        }
        std::suspend_never initial_suspend()
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void() {}
        void unhandled_exception() {}
    };
};
struct Pending {
    std::coroutine_handle<> handle;
    cudaEvent_t event;
};
static std::deque<Pending> loop;
struct Done {
    cudaEvent_t event;
    bool await_ready()
    {
        return false;
    }
    void await_suspend(std::coroutine_handle<> h)
    {
        loop.push_back({h, event});
    }
    void await_resume() {}
};
static long long total = 0;
static Task job(int value)
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count), *host = pinned_integers(count);
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int step = 0; step < 2; step++) {
        fill(device, count, value + step, stream);
        DOWNLOAD_ASYNC(host, device, count * 4, stream);
        check(cudaEventRecord(event, stream));
        co_await Done{event};
        if (variant("reads"))
            total += host[count - 1];
    }
}
void program()
{
    for (int i = 0; i < 3; i++)
        job(10 * i);
    while (!loop.empty()) {
        Pending next = loop.front();
        loop.pop_front();
        WAIT(resume, cudaEventSynchronize(next.event)); // sync: reads required, drops unnecessary
        next.handle.resume();
    }
    settle();
    expect("total", total, variant("reads") ? 63 : 0);
}

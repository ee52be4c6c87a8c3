// A decoder waits for each frame and puts it into a queue. It also waits for the device before it copies a frame,
// when the one before is there already. The consumer takes frames when it likes.
// variants: queue, own
#include "planted.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>
constexpr int count = 1024, frames = 4;
constexpr size_t bytes = count * sizeof(int);
static std::mutex lock;
static std::condition_variable changed;
static std::deque<int *> queue;
void program()
{
    int *device = device_integers(count);
    std::vector<int *> hosts;
    for (int frame = 0; frame < frames; ++frame)
        hosts.push_back(pinned_integers(count));
    std::thread consumer([&] {
        for (int frame = 0; frame < frames; ++frame) {
            std::unique_lock<std::mutex> held(lock);
            changed.wait(held, [] { return !queue.empty(); });
            int *host = queue.front();
            queue.pop_front();
            held.unlock();
            if (variant("queue"))
                expect("frame", sum(host, count), (frame + 1) * count);
        }
    });
    for (int frame = 0; frame < frames; ++frame) {
        fill(device, count, frame + 1);
        WAIT(before, cudaDeviceSynchronize()); // sync: unnecessary
        DOWNLOAD_ASYNC(hosts[frame], device, bytes);
        WAIT(copied, cudaStreamSynchronize(nullptr)); // sync: required
        if (variant("own"))
            expect("frame", sum(hosts[frame], count), (frame + 1) * count);
        std::lock_guard<std::mutex> held(lock);
        queue.push_back(hosts[frame]);
        changed.notify_one();
    }
    consumer.join();
}

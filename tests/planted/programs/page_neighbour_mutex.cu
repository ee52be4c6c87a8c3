// A lock for which threads wait in the kernel lies on the page of a download; the download is read at the end or not.
// While a thread waits in the kernel the page lies open, so that the wait for the GPU counts as needed in both.
// variants: end, never
#include "planted.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

constexpr int count = 16;

struct Page {
    int host[count];
    std::mutex mutex;
    std::condition_variable changed;
    int turn;
};

void program()
{
    int *device = device_integers(count);
    Page *page = new (pinned_integers(1024)) Page{};
    fill(device, count, 7);
    DOWNLOAD_ASYNC(page->host, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: end required, never unnecessary or required (undecidable)
    if (variant("end") && !planted::complete())
        expect("early", sum(page->host, count), 7 * count);
    std::thread other([&] {
        for (int turn = 1; turn < 10; turn += 2) {
            std::unique_lock<std::mutex> lock(page->mutex);
            page->changed.wait(lock, [&] { return page->turn == turn; });
            page->turn = turn + 1;
            page->changed.notify_all();
        }
    });
    for (int turn = 0; turn < 10; turn += 2) {
        std::unique_lock<std::mutex> lock(page->mutex);
        page->changed.wait(lock, [&] { return page->turn == turn; });
        page->turn = turn + 1;
        page->changed.notify_all();
    }
    other.join();
    expect("turns", page->turn, 10);
    if (variant("end"))
        expect("sum", sum(page->host, count), 7 * count);
}

// The CPU uses other data on the page on which a download arrives, often; or the downloaded bytes between them.
// variants: beside, inside
#include "planted.h"

constexpr int count = 64;

struct Page {
    int before[100];
    int host[count];
    int behind[100];
};

void program()
{
    int *device = device_integers(count);
    Page *page = reinterpret_cast<Page *>(pinned_integers(sizeof(Page) / sizeof(int), 1));
    fill(device, count, 7);
    DOWNLOAD_ASYNC(page->host, device, sizeof page->host);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: beside unnecessary, inside required
    expect("before", sum(page->before, 100), 100);
    for (int &value : page->behind)
        value = 2;
    expect("behind", sum(page->behind, 100), 200);
    if (variant("inside"))
        expect("inside", sum(page->host, count), 7 * count);
}

// fstat(2) fills a structure that lies where a download arrives: without the wait the download destroys it. Or
// elsewhere.
// variants: destination, other
#include "planted.h"

#include <sys/stat.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    struct stat other;
    int file = memfd_create("file", 0);
    expect("grown", ftruncate(file, 12345), 0);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: destination required, other unnecessary
    struct stat *status = variant("destination") ? reinterpret_cast<struct stat *>(host) : &other;
    expect("asked", fstat(file, status), 0);
    settle();
    expect("size", status->st_size, 12345);
}

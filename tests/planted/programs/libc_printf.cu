// printf writes a text that came, or another.
// variants: host, other
#include "planted.h"

constexpr int count = 10;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    char *host = reinterpret_cast<char *>(pinned_integers(count + 1));
    char *other = reinterpret_cast<char *>(pageable_integers(count + 1, 0));
    char text[2 * bytes];
    other[0] = 'x';
    fill(device, count, 0x61616161);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: host required, other unnecessary
    expect("length", std::snprintf(text, sizeof text, "%s", variant("host") ? host : other),
           variant("host") ? bytes : 1);
}

// strlen looks for the end of a text that came, or of another.
// variants: host, other
// like: libc_printf
#include "planted.h"

constexpr int count = 100;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    char *host = reinterpret_cast<char *>(pinned_integers(count + 1));
    char *other = reinterpret_cast<char *>(pageable_integers(count + 1, 0));
    other[0] = 'x';
    fill(device, count, 0x61616161);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: host required, other unnecessary
    expect("length", std::strlen(variant("host") ? host : other), variant("host") ? bytes : 1);
}

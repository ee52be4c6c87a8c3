// realloc copies what a download brought to a larger place; or it enlarges other memory.
// variants: destination, other
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pageable_integers(count);
    int *other = pageable_integers(count, 3);
    int *behind = pageable_integers(count);
    check(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaDeviceSynchronize()); // sync: destination required, other unnecessary
    int *larger = static_cast<int *>(std::realloc(variant("destination") ? host : other, 100 * bytes));
    expect("sum", sum(larger, count), (variant("destination") ? 7 : 3) * count);
    expect("behind", sum(behind, count), 0);
}

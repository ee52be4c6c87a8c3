// A kernel writes memory of the C library by its address; the CPU reads that, or other memory that it downloaded.
// variants: read, other
#include "planted.h"

constexpr int count = 1024;

void program()
{
    int *host = pageable_integers(count), *other = pageable_integers(count, 3);
    fill(host, count, 7);
    WAIT(last, cudaDeviceSynchronize()); // sync: read required, other required (undecidable)
    bool read = variant("read");
    expect("sum", sum(read ? host : other, count), (read ? 7 : 3) * count);
    settle();
}

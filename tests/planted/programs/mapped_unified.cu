// With unified addressing a kernel takes the address of any pinned memory as it stands.
// variants: read, never
// like: mapped_read
#include "planted.h"

constexpr int count = 1024;

void program()
{
    int *host = pinned_integers(count);
    fill(host, count, 7);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}

// A kernel of a captured graph writes mapped memory; the CPU reads that, or other memory that is mapped too.
// variants: read, other
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *host = pinned_integers(count), *other = pinned_integers(count, 3);
    cudaGraphExec_t graph = captured(stream, [&] { fill(host, count, 7, stream); });
    check(cudaGraphLaunch(graph, stream));
    WAIT(last, cudaStreamSynchronize(stream)); // sync: read required, other unnecessary
    bool read = variant("read");
    expect("sum", sum(read ? host : other, count), (read ? 7 : 3) * count);
}

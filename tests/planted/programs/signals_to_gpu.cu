// Work of a second stream is enqueued early, behind something that only the CPU ends: a value in memory that it stores,
// a function that waits for it, one of a graph. What the CPU has waited for before it does so comes before that work,
// as nothing else sees to. Or it does so before its wait, which is not seen.
// variants: value, function, graph, before
#include "planted.h"

#include <cuda.h>
#include <semaphore.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static sem_t go;

static void CUDART_CB wait_for_cpu(void *)
{
    sem_wait(&go);
}

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *made = device_integers(count), *used = device_integers(count);
    int *host = pinned_integers(count);
    uint32_t *flag = reinterpret_cast<uint32_t *>(pinned_integers(1));
    sem_init(&go, 0, 0);
    check(cudaMemset(made, 0, bytes));
    check(cudaDeviceSynchronize()); // sync: required or unnecessary
    fill(made, count, 7, first);
    const cudaGraphExec_t graph =
        variant("graph") ? captured(second, [&] { check(cudaLaunchHostFunc(second, wait_for_cpu, nullptr)); })
                         : nullptr;
    if (variant("graph"))
        check(cudaGraphLaunch(graph, second));
    else if (variant("function"))
        check(cudaLaunchHostFunc(second, wait_for_cpu, nullptr));
    else
        expect("result", cuStreamWaitValue32(second, CUdeviceptr(flag), 1, CU_STREAM_WAIT_VALUE_GEQ), 0);
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    if (variant("before"))
        __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    // sync: value, function, graph required, before required (undecidable)
    WAIT(first_work, cudaStreamSynchronize(first));
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    sem_post(&go);
    // sync: value, function, graph required, before required (undecidable)
    WAIT(last, cudaStreamSynchronize(second));
    if (variant("before")) /* what the two streams make of it together is chance */
        expect("whole", host[0] == 8 || host[0] == 1, 1);
    else
        expect("sum", sum(host, count), 8 * count);
}

// A kernel prints, and the text appears in the first wait after it, or in a copy, but not in cudaFree, also if a silent
// kernel or an upload comes between. Or the kernel only could print, or the program itself prints while it waits.
// variants: context, stream, event, copy, again, free, upload, behind, silent, beside
#include "planted.h"

#include <atomic>
#include <cuda.h>
#include <fcntl.h>
#include <thread>

static const char code[] = R"(
.version 7.0
.target sm_70
.address_size 64
.global .align 1 .b8 words[6] = {115, 97, 105, 100, 10, 0};
.extern .func (.param .b32 count) vprintf (.param .b64 format, .param .b64 arguments);
.visible .entry say(.param .u32 loudly)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<3>;
    .reg .pred %p<2>;
    ld.param.u32 %r1, [loudly];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    mov.u64 %d1, words;
    mov.u64 %d2, 0;
    {
        .param .b64 p0;
        .param .b64 p1;
        .param .b32 q0;
        st.param.b64 [p0], %d1;
        st.param.b64 [p1], %d2;
        call.uni (q0), vprintf, (p0, p1);
        ld.param.b32 %r2, [q0];
    }
DONE:
    ret;
}
)";

static int output; // where the standard output goes meanwhile

/* What has been printed so far. */
static long long printed()
{
    std::fflush(stdout);
    return lseek(output, 0, SEEK_CUR);
}

static void say(CUfunction function, unsigned loudly, cudaStream_t stream = nullptr)
{
    void *arguments[] = {&loudly};
    check(static_cast<cudaError_t>(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr)));
}

/* A long time's work, and after it a kernel that says "said". */
static void work(CUfunction function, int *device, unsigned loudly = 1, cudaStream_t stream = nullptr)
{
    fill(device, 1, 7, stream);
    say(function, loudly, stream);
}

static void on_a_stream(CUfunction function, int *device)
{
    const cudaStream_t stream = independent_stream();
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    work(function, device, 1, stream);
    check(cudaEventRecord(event, stream));
    if (variant("stream"))
        // sync: stream required, context, event, copy, again, free, upload, behind, silent, beside absent
        WAIT(stream, cudaStreamSynchronize(stream));
    else
        // sync: event required, context, stream, copy, again, free, upload, behind, silent, beside absent
        WAIT(event, cudaEventSynchronize(event));
}

static void wait(CUfunction function, int *device)
{
    int *source = pinned_integers(1, 3), *other = device_integers(1);
    work(function, device);
    if (variant("free"))
        // sync: free unnecessary, context, stream, event, copy, again, upload, behind, silent, beside absent
        FREE(released, other);
    if (variant("upload"))
        UPLOAD_ASYNC(other, source, sizeof(int));
    if (variant("behind"))
        say(function, 0);
    // sync: context, again, free, upload, behind required, stream, event, copy, silent, beside absent
    WAIT(context, cudaDeviceSynchronize());
}

static void without_text(CUfunction function, int *device)
{
    std::atomic<bool> over{false};
    std::thread talks([&] {
        for (; variant("beside") && !over; usleep(100))
            std::puts("still here");
    });
    work(function, device, 0);
    // sync: again, silent, beside unnecessary, context, stream, event, copy, free, upload, behind absent
    WAIT(needless, cudaDeviceSynchronize());
    over = true;
    talks.join();
}

void program()
{
    CUmodule module;
    CUfunction function;
    int *device = device_integers(1), *host = pageable_integers(1);
    // sync: unnecessary
    check(static_cast<cudaError_t>(cuModuleLoadData(&module, code)));
    check(static_cast<cudaError_t>(cuModuleGetFunction(&function, module, "say")));
    std::fflush(stdout);
    const int terminal = dup(STDOUT_FILENO);
    output = memfd_create("output", 0);
    dup2(output, STDOUT_FILENO);
    if (variant("stream") || variant("event")) {
        on_a_stream(function, device);
    } else if (variant("copy")) {
        work(function, device);
        // sync: copy required, context, stream, event, again, free, upload, behind, silent, beside absent
        DOWNLOAD(copy, host, device, sizeof(int));
    } else if (!variant("silent") && !variant("beside")) {
        wait(function, device);
    }
    const long long seen = printed();
    if (variant("again") || variant("silent") || variant("beside"))
        without_text(function, device);
    dup2(terminal, STDOUT_FILENO);
    expect("characters", seen, variant("silent") || variant("beside") ? 0 : std::strlen("said\n"));
}

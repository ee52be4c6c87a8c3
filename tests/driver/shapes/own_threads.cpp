/* A thread of the driver itself, which waits again and again, as one that delivers callbacks does. */
#include <chrono>
#include <thread>

#include "contexts/wait.h"

namespace vgpu
{

__attribute__((constructor)) static void start_thread()
{
    std::thread([] {
        for (;;) {
            wait_for_gpu({});
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }).detach();
}

} // namespace vgpu

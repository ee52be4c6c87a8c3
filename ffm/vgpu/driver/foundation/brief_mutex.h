/* A mutex that is held for less time than it takes to sleep and be woken.
 *
 * The program's thread and the one that plays the GPU take the same locks, which no program and its GPU do. So whoever
 * finds it taken looks again for a while before it sleeps (an adaptive mutex). */
#pragma once

#include <mutex>
#include <pthread.h>

namespace vgpu
{

class BriefMutex : public std::mutex
{
  public:
    BriefMutex()
    {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
        pthread_mutex_init(native_handle(), &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
};

} // namespace vgpu

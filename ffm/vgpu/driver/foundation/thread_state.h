/* State of each thread that lasts as long as the thread can call the driver. */
#ifndef VGPU_THREAD_STATE_H
#define VGPU_THREAD_STATE_H

#include <climits>
#include <cstdlib>
#include <pthread.h>

namespace vgpu
{

/* A `thread_local` object is gone when the destructors of the program's own thread-local data, and in the first thread
 * those of its static data, call the driver. This one is destroyed in the last round of such destructors, and in the
 * first thread never. */
template <typename State> class ThreadState
{
  public:
    ThreadState()
    {
        if (pthread_key_create(&key_, &ThreadState::end_round) != 0)
            std::abort();
    }

    State &here()
    {
        auto *held = static_cast<Held *>(pthread_getspecific(key_));
        if (!held) {
            held = new Held{{}, key_, 0};
            pthread_setspecific(key_, held);
        }
        return held->state;
    }

  private:
    struct Held {
        State state;
        pthread_key_t key;
        int rounds;
    };

    static void end_round(void *opaque)
    {
        auto *held = static_cast<Held *>(opaque);
        if (++held->rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
            pthread_setspecific(held->key, held);
        else
            delete held;
    }

    pthread_key_t key_;
};

} // namespace vgpu

#endif

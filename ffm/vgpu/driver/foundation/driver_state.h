/* Whether the driver can be used in this process. */
#pragma once

/* The value of vgpu_state in a child forked after cuInit, where the GPU's threads do not exist. It is a macro because
 * the stubs' assembly needs it, and wide so that a stub is long enough to be patched. */
#define VGPU_UNUSABLE 0x464f524b

/* Tested by every export's stub (`stubs.cpp`). */
extern "C" __attribute__((visibility("hidden"))) int vgpu_state;

namespace vgpu
{

inline bool driver_unusable()
{
    return vgpu_state == VGPU_UNUSABLE;
}

} // namespace vgpu

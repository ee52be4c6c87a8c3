/* Whether the driver can be used in this process. */
#pragma once

namespace vgpu {

/* True in a child forked after cuInit, where the GPU's threads do not exist. Every export tests it. */
bool driver_unusable();

} // namespace vgpu

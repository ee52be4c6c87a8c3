/* Containers of device code ("fat binaries"), as nvcc makes them: the code of one source for several devices. */
#pragma once

#include <cstdint>
#include <string>

namespace vgpu
{

/* The devices' compute capability: 10 * major + minor. */
constexpr std::uint32_t capability = 90;

enum class CodeKind : std::uint16_t { portable = 1, machine = 2 };

bool is_container(const void *image);

/* The container's code of one kind that suits the devices best; false if it has none that can be read. */
bool code_for_device(const void *container, CodeKind kind, std::string &plain);

/* Its PTX for the oldest of the later devices; false if there is none. */
bool portable_code_for_later(const void *container, std::string &plain);

} // namespace vgpu

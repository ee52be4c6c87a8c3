#include "kernel_arguments.h"

#include <cstring>

#include "memory/memory.h"

namespace vgpu
{

KernelArguments::KernelArguments(const KernelEntry &entry, void *const *values, Pointers pointers)
{
    storage_.resize((packed_size(entry) + sizeof(Slot) - 1) / sizeof(Slot));
    char *packed = reinterpret_cast<char *>(storage_.data());
    for (std::uint32_t index = 0; index < entry.parameter_count; ++index) {
        const KernelParameter &parameter = entry.parameters[index];
        char *place = packed + parameter.offset;
        std::memcpy(place, values[index], parameter.size);
        if (pointers == Pointers::translated)
            translate_pointers(place, parameter.size);
        pointers_.push_back(place);
    }
}

std::size_t KernelArguments::packed_size(const KernelEntry &entry)
{
    if (entry.parameter_count == 0)
        return 0;
    const KernelParameter &last = entry.parameters[entry.parameter_count - 1];
    return last.offset + last.size;
}

} // namespace vgpu

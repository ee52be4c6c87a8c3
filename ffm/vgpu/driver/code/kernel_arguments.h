/* A kernel's arguments, packed like its parameters, and kept until it has run. */
#pragma once

#include <vector>

#include "../../include/kernel_image.h"

namespace vgpu
{

/* As the program passed them, or with pointers to host memory replaced by those that the GPU uses. */
enum class Pointers { as_given, translated };

class KernelArguments
{
  public:
    KernelArguments(const KernelEntry &entry, void *const *values, Pointers pointers);
    KernelArguments(const KernelArguments &) = delete;
    KernelArguments &operator=(const KernelArguments &) = delete;

    /* One for each parameter. */
    void *const *pointers() const
    {
        return pointers_.data();
    }

    /* All of them, at the offsets of their parameters. */
    const char *packed() const
    {
        return reinterpret_cast<const char *>(storage_.data());
    }
    std::size_t size() const
    {
        return storage_.size() * sizeof(Slot);
    }

    static std::size_t packed_size(const KernelEntry &entry);

  private:
    struct alignas(16) Slot {
        char bytes[16];
    };

    std::vector<Slot> storage_;
    std::vector<void *> pointers_;
};

} // namespace vgpu

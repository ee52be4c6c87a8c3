/* Stacks that a host thread can change between. */
#pragma once

#include <cstddef>
#include <vector>

namespace vgpu::ptx
{

/* Stacks of one size, of one host thread; kept until the end of the pool. */
class StackPool
{
  public:
    explicit StackPool(std::size_t size);
    ~StackPool();
    StackPool(const StackPool &) = delete;
    StackPool &operator=(const StackPool &) = delete;

    /* Its lowest address; null where there is no memory. */
    char *take();
    void give_back(char *stack)
    {
        free_.push_back(stack);
    }
    std::size_t size() const
    {
        return size_;
    }

  private:
    static constexpr std::size_t at_a_time = 32;
    std::size_t size_;
    std::vector<char *> free_;
    std::vector<char *> mapped_;
};

/* The place to continue at for `resume`, such that `main(argument)` begins on the stack. `main` must not return. */
void *prepare(char *stack, std::size_t size, void (*main)(void *), void *argument);

} // namespace vgpu::ptx

/* Leaves the current stack, whose place to continue at is stored, for another one. */
extern "C" __attribute__((visibility("hidden"))) void vgpu_resume(void **store_here, void *continue_at);

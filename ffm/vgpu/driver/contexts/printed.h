/* What kernels of a context printed, until the program is shown it. */
#pragma once

#include <mutex>
#include <string>

namespace vgpu
{

/* As CUDA documents it, output that no later call shows is lost. The size of the buffer is not limited here. */
class Printed
{
  public:
    /* A kernel that is over printed the text. */
    void keep(const std::string &text);

    /* Writes all that is kept to the standard output. */
    void show();

  private:
    std::mutex mutex_;
    std::string text_;
};

} // namespace vgpu

#include "printed.h"

#include <cstdio>

namespace vgpu
{

void Printed::keep(const std::string &text)
{
    std::lock_guard<std::mutex> lock(mutex_);
    text_ += text;
}

void Printed::show()
{
    std::lock_guard<std::mutex> lock(mutex_); /* also held while writing, so that texts keep their order */
    if (text_.empty())
        return;
    std::fwrite(text_.data(), 1, text_.size(), stdout);
    std::fflush(stdout);
    text_.clear();
}

} // namespace vgpu

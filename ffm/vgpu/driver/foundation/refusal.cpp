#include "refusal.h"

#include <cstdarg>
#include <cstdio>

#include "configuration.h"

namespace vgpu
{

void refused(const char *format, ...)
{
    if (configuration().log_refused == 0)
        return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "vgpu: refused: %s\n", text);
}

} // namespace vgpu

#include "compiler_logs.h"

namespace
{

void empty_log(unsigned int count, const CUjit_option *options, void **values, CUjit_option buffer, CUjit_option size)
{
    char *text = nullptr;
    void **bytes = nullptr;
    for (unsigned int index = 0; index < count; ++index) {
        if (options[index] == buffer)
            text = static_cast<char *>(values[index]);
        if (options[index] == size)
            bytes = &values[index];
    }
    if (!bytes)
        return;
    if (text && *bytes)
        *text = '\0';
    *bytes = nullptr;
}

} // namespace

void vgpu::empty_logs(unsigned int count, const CUjit_option *options, void **values)
{
    if (!options || !values)
        return;
    empty_log(count, options, values, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
    empty_log(count, options, values, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
}

#include "compressed_code.h"

#include <cstdio>
#include <dlfcn.h>

namespace vgpu
{

namespace
{

/* A function of a library that most machines have, so that the driver needs it only for compressed code. */
void *function_of(const char *library, const char *name)
{
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *function = opened ? dlsym(opened, name) : nullptr;
    if (!function)
        std::fprintf(stderr, "virtual GPU: the device code is compressed, and there is no %s in %s\n", name, library);
    return function;
}

/* lz4.h: bytes written; negative if the source is wrong. */
bool decompress_lz4(const char *bytes, std::size_t size, std::string &plain)
{
    using Function = int (*)(const char *, char *, int, int);
    static const auto function = reinterpret_cast<Function>(function_of("liblz4.so.1", "LZ4_decompress_safe"));
    return function && function(bytes, plain.data(), static_cast<int>(size), static_cast<int>(plain.size())) ==
                           static_cast<int>(plain.size());
}

/* zstd.h: bytes written; an error is a number larger than any size. */
bool decompress_zstandard(const char *bytes, std::size_t size, std::string &plain)
{
    using Function = std::size_t (*)(void *, std::size_t, const void *, std::size_t);
    static const auto function = reinterpret_cast<Function>(function_of("libzstd.so.1", "ZSTD_decompress"));
    return function && function(plain.data(), plain.size(), bytes, size) == plain.size();
}

} // namespace

bool decompress(Compression compression, const char *bytes, std::size_t size, std::string &plain)
{
    return compression == Compression::lz4 ? decompress_lz4(bytes, size, plain)
                                           : decompress_zstandard(bytes, size, plain);
}

} // namespace vgpu

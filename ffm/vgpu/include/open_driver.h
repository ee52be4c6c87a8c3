/* Opening the driver, for libcudart and libvblas. */
#ifndef OPEN_DRIVER_H
#define OPEN_DRIVER_H

#include <dlfcn.h>
#include <string>

/* The handle of libcuda.so.1, or null if there is none. It is the one that the loader finds, which also searches the
 * calling library's folder (its run path). If something stands between the caller and dlopen (a sanitizer, a tool), the
 * loader does not know whose run path to use, so the caller's folder is tried by name. */
static inline void *open_driver()
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    Dl_info caller;
    if (driver || dladdr(reinterpret_cast<void *>(&open_driver), &caller) == 0)
        return driver;
    std::string path = caller.dli_fname;
    return dlopen((path.substr(0, path.rfind('/') + 1) + "libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
}

#endif

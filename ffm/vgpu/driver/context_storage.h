/* What libraries keep with a context: values by key, each with what is called when the context goes. */
#pragma once

#include <cuda.h>

namespace vgpu
{

/* Called with the context, the key and the value. */
using StorageDestructor = void (*)(CUcontext, void *, void *);

void store(CUcontext context, void *key, void *value, StorageDestructor destructor);
bool stored(CUcontext context, void *key, void *&value);
void forget(CUcontext context, void *key);

/* Calls the destructors of all that is stored with the context, which still exists, and forgets it. */
void destroy_storage(CUcontext context);

} // namespace vgpu

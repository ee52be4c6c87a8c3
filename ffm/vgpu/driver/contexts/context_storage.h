/* What libraries store with a context: values by key, each with a destructor that is called when the context ends. */
#pragma once

#include "foundation/cuda_api.h"

namespace vgpu
{

/* Called with the context, the key and the value. */
using StorageDestructor = void (*)(CUcontext, void *, void *);

void store(CUcontext context, void *key, void *value, StorageDestructor destructor);
bool stored(CUcontext context, void *key, void *&value);
void forget(CUcontext context, void *key);

/* Calls the destructors of everything stored with the context, which still exists, and forgets it. */
void destroy_storage(CUcontext context);

} // namespace vgpu

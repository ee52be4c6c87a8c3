#include "context_storage.h"

#include <map>
#include <mutex>
#include <utility>

namespace vgpu
{

namespace
{

struct StoredValue {
    void *value;
    StorageDestructor destructor;
};

using StoredValues = std::map<void *, StoredValue>; /* by key */

struct Storage {
    std::mutex mutex;
    std::map<CUcontext, StoredValues> of_context;
};

Storage &storage()
{
    static Storage *instance = new Storage;
    return *instance;
}

} // namespace

void store(CUcontext context, void *key, void *value, StorageDestructor destructor)
{
    std::lock_guard<std::mutex> lock(storage().mutex);
    storage().of_context[context][key] = {value, destructor};
}

bool stored(CUcontext context, void *key, void *&value)
{
    std::lock_guard<std::mutex> lock(storage().mutex);
    const StoredValues &entries = storage().of_context[context];
    auto found = entries.find(key);
    if (found == entries.end())
        return false;
    value = found->second.value;
    return true;
}

void forget(CUcontext context, void *key)
{
    std::lock_guard<std::mutex> lock(storage().mutex);
    storage().of_context[context].erase(key);
}

/* The destructors run without the lock, because they call the driver and this storage. */
void destroy_storage(CUcontext context)
{
    StoredValues entries;
    {
        std::lock_guard<std::mutex> lock(storage().mutex);
        entries = std::move(storage().of_context[context]);
        storage().of_context.erase(context);
    }
    for (const auto &[key, entry] : entries) {
        if (entry.destructor)
            entry.destructor(context, key, entry.value);
    }
}

} // namespace vgpu

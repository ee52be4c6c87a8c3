/* Pools of stream-ordered memory. */
#include <cstring>

#include "runtime_api.h"

using namespace cudart;

static CUmemoryPool pool_of(cudaMemPool_t pool)
{
    return reinterpret_cast<CUmemoryPool>(pool);
}

/* Both structures have the same layout (driver_types.h, cuda.h). */
static CUmemPoolProps properties_of(const cudaMemPoolProps &given)
{
    static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
    CUmemPoolProps properties;
    std::memcpy(&properties, &given, sizeof properties);
    return properties;
}

RUNTIME_CALL cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *given)
{
    if (!given)
        return finish(cudaErrorInvalidValue);
    CUmemPoolProps properties = properties_of(*given);
    return finish(call(legacy_driver().cuMemPoolCreate, reinterpret_cast<CUmemoryPool *>(pool), &properties));
}
RUNTIME_CALL cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return finish(call(legacy_driver().cuMemPoolDestroy, pool_of(pool)));
}
RUNTIME_CALL cudaDeviceGetMemPool(cudaMemPool_t *pool, int ordinal)
{
    return finish(call(legacy_driver().cuDeviceGetMemPool, reinterpret_cast<CUmemoryPool *>(pool), ordinal));
}
RUNTIME_CALL cudaDeviceSetMemPool(int ordinal, cudaMemPool_t pool)
{
    return finish(call(legacy_driver().cuDeviceSetMemPool, ordinal, pool_of(pool)));
}
RUNTIME_CALL cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int ordinal)
{
    return finish(call(legacy_driver().cuDeviceGetDefaultMemPool, reinterpret_cast<CUmemoryPool *>(pool), ordinal));
}
RUNTIME_CALL cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
    return finish(
        call(legacy_driver().cuMemPoolGetAttribute, pool_of(pool), static_cast<CUmemPool_attribute>(attribute), value));
}
RUNTIME_CALL cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
    return finish(
        call(legacy_driver().cuMemPoolSetAttribute, pool_of(pool), static_cast<CUmemPool_attribute>(attribute), value));
}
RUNTIME_CALL cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    return finish(call(legacy_driver().cuMemPoolTrimTo, pool_of(pool), keep));
}

/* cuProfilerStart and cuProfilerStop. There is no profiler to start, but that is not an error. */
#include "context.h"

DRIVER_CALL(cuProfilerStart)()
{
    return vgpu::enter();
}
DRIVER_CALL(cuProfilerStop)()
{
    return vgpu::enter();
}

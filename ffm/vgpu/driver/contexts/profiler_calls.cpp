/* cuProfilerStart and cuProfilerStop: there is no profiler to start, which is not an error. */
#include "context.h"

DRIVER_CALL(cuProfilerStart)()
{
    return vgpu::enter();
}
DRIVER_CALL(cuProfilerStop)()
{
    return vgpu::enter();
}

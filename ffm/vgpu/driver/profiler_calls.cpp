/* cuProfilerStart and cuProfilerStop: there is no profiler that they could start, which is no error. */
#include "context.h"

DRIVER_CALL(cuProfilerStart)()
{
    return vgpu::enter();
}
DRIVER_CALL(cuProfilerStop)()
{
    return vgpu::enter();
}

#include "driver.h"

#include "bindings.h"

ffm_driver_table ffm_driver;

bool ffm_driver_resolve(void)
{
    bool complete = true;
#define DRIVER(field, name, parameters)                                                                                \
    ffm_driver.field = (int(*) parameters)ffm_call_original_named(#name);                                              \
    complete = complete && ffm_driver.field != NULL;
    FFM_DRIVER_FUNCTIONS(DRIVER)
#undef DRIVER
    return complete;
}

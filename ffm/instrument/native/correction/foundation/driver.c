#include "driver.h"

#include "bindings.h"

ffm_driver_table ffm_driver;

bool ffm_driver_resolve(void)
{
    bool complete = true;
#define DRIVER(field, purpose, parameters)                                                                             \
    ffm_driver.field = (int(*) parameters)ffm_own_call(FFM_OWN_CALL_##purpose, false);                                 \
    complete = complete && ffm_driver.field != NULL;
    FFM_DRIVER_FUNCTIONS(DRIVER)
#undef DRIVER
    return complete;
}

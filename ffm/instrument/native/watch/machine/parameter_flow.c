#include "parameter_flow.h"

#include "carrier_flow.h"
#include "machine_barriers.h"
#include "machine_ways.h"

bool ffm_may_be_address(uint32_t architecture, const uint8_t *code, size_t bytes, uint32_t place)
{
    ffm_ways ways;
    ffm_carrier_flow flow;
    if (!ffm_ways_open(&ways, architecture, code, bytes))
        return true;
    ffm_barriers_follow(&ways);
    bool used = !ffm_carrier_flow_open(&flow, &ways, ffm_instruction_uses, place);
    if (!used) {
        const ffm_carriers none = {{0}, {0}, 0};
        ffm_carrier_flow_enter(&flow, 0, &none);
        used = ffm_carrier_flow_uses(&flow);
        ffm_carrier_flow_close(&flow);
    }
    ffm_ways_close(&ways);
    return used;
}

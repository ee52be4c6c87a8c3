#include "parameter_flow.h"

#include "carrier_flow.h"
#include "machine_assertions.h"
#include "machine_barriers.h"
#include "machine_ways.h"

bool ffm_may_be_address(uint32_t architecture, const uint8_t *code, size_t bytes, uint32_t place, bool asserts)
{
    ffm_ways ways;
    ffm_carrier_flow flow;
    if (!ffm_ways_open(&ways, architecture, code, bytes))
        return true;
    ffm_barriers_follow(&ways);
    const ffm_carried uses = asserts && ffm_only_asserts(&ways) ? ffm_instruction_uses_asserting : ffm_instruction_uses;
    bool used = !ffm_carrier_flow_open(&flow, &ways, uses, place, true);
    if (!used) {
        const ffm_carriers none = {{0}, {0}, 0};
        ffm_carrier_flow_enter(&flow, 0, &none);
        used = ffm_carrier_flow_uses(&flow);
        ffm_carrier_flow_close(&flow);
    }
    ffm_ways_close(&ways);
    return used;
}

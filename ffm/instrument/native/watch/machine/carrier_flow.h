/* How what registers carry spreads on all ways through a GPU's code. */
#ifndef FFM_CARRIER_FLOW_H
#define FFM_CARRIER_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine_flow.h"
#include "machine_ways.h"

/* Before an instruction: what carries it, and whether control may come there. */
typedef struct {
    ffm_carriers carriers;
    bool reached, changed;
} ffm_carriers_before;

/* What one instruction does, as ffm_instruction_uses. */
typedef bool (*ffm_carried)(uint32_t architecture, const uint64_t word[2], uint32_t place, ffm_carriers *carriers);

typedef struct {
    const ffm_ways *ways;
    ffm_carried uses;
    uint32_t place; /* of the half of an address that it is about */
    ffm_carriers_before *before;
    size_t next; /* the first instruction whose state changed may be there or behind it */
} ffm_carrier_flow;

/* False if there is no memory, and then there is nothing to close. */
bool ffm_carrier_flow_open(ffm_carrier_flow *flow, const ffm_ways *ways, ffm_carried uses, uint32_t place);
void ffm_carrier_flow_close(ffm_carrier_flow *flow);

/* As if no control had come anywhere. */
void ffm_carrier_flow_clear(ffm_carrier_flow *flow);

/* Let control come to an instruction with these carriers. */
void ffm_carrier_flow_enter(ffm_carrier_flow *flow, size_t number, const ffm_carriers *carriers);

/* Follow all ways from there. Returns whether what is carried is used on any of them; then that is where it ends. */
bool ffm_carrier_flow_uses(ffm_carrier_flow *flow);

#endif

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
    bool reached;
} ffm_carriers_before;

/* What one instruction does, as ffm_instruction_uses. */
typedef bool (*ffm_carried)(uint32_t architecture, const uint64_t word[2], uint32_t place, ffm_carriers *carriers);

/* What a function does for one of its callers does not come to the others: there is a state of each instruction for
 * the kernel's own code, and one for what each call leads to. */
typedef struct {
    const ffm_ways *ways;
    ffm_carried uses;
    uint32_t place;    /* of the half of an address that it is about */
    uint32_t contexts; /* the kernel's own, then those of its calls, if these are followed apart */
    ffm_carriers_before *before;
    uint64_t *changed;                        /* a bit for each of these */
    size_t next;                              /* the first word of them in which one may be set */
    uint64_t callers[FFM_CALLS_FOLLOWED + 1]; /* of each context, those that call from there */
} ffm_carrier_flow;

/* With calls followed apart where that is known and asked for. False if there is no memory, and then there is nothing
 * to close. */
bool ffm_carrier_flow_open(ffm_carrier_flow *flow, const ffm_ways *ways, ffm_carried uses, uint32_t place, bool apart);
void ffm_carrier_flow_close(ffm_carrier_flow *flow);

/* As if no control had come anywhere. */
void ffm_carrier_flow_clear(ffm_carrier_flow *flow);

/* Let control come to an instruction of the kernel's own code with these carriers. */
void ffm_carrier_flow_enter(ffm_carrier_flow *flow, size_t number, const ffm_carriers *carriers);

/* Follow all ways from there. Returns whether what is carried is used on any of them; then that is where it ends. */
bool ffm_carrier_flow_uses(ffm_carrier_flow *flow);

#endif

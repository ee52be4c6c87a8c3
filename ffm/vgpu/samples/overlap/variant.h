/* The seams between `overlap` and its two corrected twins: the same sources, in each of which one problem is fixed.
 *
 * - `overlap_fixed_wait` (OVERLAP_FIXED_WAIT=1) leaves out the wait for the upload, which no order depends on: the
 * kernels that read the frame follow it on the same stream.
 * - `overlap_fixed_order` (OVERLAP_FIXED_ORDER=1) replaces the wait that orders the two streams by an event, on which
 * the other stream waits instead of the CPU.
 */
#pragma once

#ifndef OVERLAP_FIXED_WAIT
#define OVERLAP_FIXED_WAIT 0
#endif
#ifndef OVERLAP_FIXED_ORDER
#define OVERLAP_FIXED_ORDER 0
#endif

constexpr bool waits_for_upload = OVERLAP_FIXED_WAIT == 0;
constexpr bool orders_by_waiting = OVERLAP_FIXED_ORDER == 0;

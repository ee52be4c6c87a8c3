/* All sources that wait, for the shape in which each of them polls: compiled at once, because most of the time would go
 * into reading the same headers.
 */
#include "contexts/context.cpp"
#include "contexts/event_calls.cpp"
#include "exports/export_table.cpp"
#include "memory/copy.cpp"
#include "memory/set_calls.cpp"
#include "memory/staging.cpp"

#include "waits.cpp"

/* Reports on request (`log.refused`) what a program asked for and did not get. */
#pragma once

namespace vgpu
{

/* Formats like printf, as a line on standard error: "vgpu: refused: …". */
__attribute__((format(printf, 1, 2))) void refused(const char *format, ...);

} // namespace vgpu

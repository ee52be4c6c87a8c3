/* Names that a library exports; all others are hidden. */
#ifndef FFM_EXPORT_H
#define FFM_EXPORT_H

#define FFM_EXPORT __attribute__((visibility("default")))

#endif

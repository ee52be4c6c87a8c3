#include "catalogue.h"

const ffm_function ffm_catalogue[FFM_FUNCTION_COUNT] = {
#define FFM_FUNCTION(index, name_, arity_, kind_, memory_, direction_, shape_, destination_, source_, bytes_, stream_, \
                     result_, handle_, parameters_, extra_, node_, description_, flags_, element_, asynchronous_,      \
                     per_thread_, awaits_, effect_)                                                                    \
    [index] = {.name = #name_,                                                                                         \
               .arity = arity_,                                                                                        \
               .kind = kind_,                                                                                          \
               .memory = memory_,                                                                                      \
               .direction = direction_,                                                                                \
               .shape = shape_,                                                                                        \
               .destination = destination_,                                                                            \
               .source = source_,                                                                                      \
               .bytes = bytes_,                                                                                        \
               .stream = stream_,                                                                                      \
               .result = result_,                                                                                      \
               .handle = handle_,                                                                                      \
               .parameters = parameters_,                                                                              \
               .extra = extra_,                                                                                        \
               .node = node_,                                                                                          \
               .description = description_,                                                                            \
               .flags = flags_,                                                                                        \
               .element = element_,                                                                                    \
               .asynchronous = asynchronous_,                                                                          \
               .per_thread_stream = per_thread_,                                                                       \
               .awaits = awaits_,                                                                                      \
               .effect = effect_},
#include "catalogue.inc"
#undef FFM_FUNCTION
};

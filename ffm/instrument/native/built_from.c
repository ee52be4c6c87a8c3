/* What a library was built from, for ffm/instrument/library.py to find in its file: each file on which the library and
 * Python or the agent must agree, with its digest at build time. */
__attribute__((used)) static const char built_from[] = "ffm built from " FFM_BUILT_FROM "\n";

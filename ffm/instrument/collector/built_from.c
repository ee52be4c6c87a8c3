/* What a library was built from, for ffm/instrument/library.py to find in its file: each file that the library and
 * Python or the agent must agree on, and the digest that it had. */
__attribute__((used)) static const char built_from[] = "ffm built from " FFM_BUILT_FROM "\n";

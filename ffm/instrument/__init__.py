"""Everything that touches a live process: the Frida session, the agent, the native collector, its records."""

// Functions of the C library that are replaced before the program runs.

// Functions of the C library, replaced before the program runs. One that cannot be replaced stays unchanged; the
// library checks for those that it needs.
function guardLibrary() {
  if (configuration.guarded.length === 0) {
    return;
  }
  const library = Process.findModuleByName("libc.so.6");
  if (library === null) {
    return;
  }
  for (const [index, name] of configuration.guarded) {
    const address = library.findExportByName(name);
    if (address === null || collector.isBound(address)) {
      continue; // a forked child keeps its parent's hooks
    }
    try {
      detour(address, collector.wrapper(index), (original) => collector.bind(index, address, original));
    } catch (error) {
      // Too short.
    }
  }
}

// Tell the preloaded library whose heap blocks get pages of their own.
function expectResults(module) {
  const requests = configuration.ownPages[module.path];
  const expect = requests === undefined ? null : Module.findGlobalExportByName("ffm_result_blocks_expect");
  if (expect === null) {
    return;
  }
  const tell = new NativeFunction(expect, "void", ["pointer", "uint64"]);
  requests.forEach(([offset, bytes]) => tell(module.base.add(offset), bytes));
}

// The allocators that the program calls, including its own. One that cannot be replaced stays unchanged; then the
// origin of its memory is unknown.
function hookAllocators() {
  for (let place = 0; ; place++) {
    const name = collector.allocatorName(place);
    if (name.isNull()) {
      break;
    }
    const address = Module.findGlobalExportByName(name.readUtf8String());
    if (address === null || collector.allocatorIsBound(place)) {
      continue;
    }
    try {
      detour(address, collector.allocatorWrapper(place), (original) => collector.allocatorBind(place, original));
    } catch (error) {
      // Too short.
    }
  }
}

// Functions that read clocks, and those by which threads start, join, and hand over to each other, as the stage needs
// them. One that the library lacks has no callers either. Where the kernel's code cannot be changed, its direct callers
// are not seen; where a handover is not seen, nothing counts as ordered by it.
function hookFollowed() {
  const library = Process.getModuleByName("libc.so.6");
  const kernel = Process.findModuleByName("linux-vdso.so.1");
  for (let place = 0; ; place++) {
    const name = collector.followedName(configuration.mode, place);
    if (name.isNull()) {
      break;
    }
    const inKernel = name.readUtf8String().startsWith("__vdso");
    const address = (inKernel ? kernel : library)?.findExportByName(name.readUtf8String()) ?? null;
    const wrapper = collector.followedWrapper(configuration.mode, place);
    if (address === null || wrapper.isNull()) {
      continue;
    }
    try {
      detour(address, wrapper, (original) => collector.followedBind(configuration.mode, place, original));
    } catch (error) {
      if (/clock/.test(name.readUtf8String()) && !inKernel) {
        throw error;
      }
    }
  }
}

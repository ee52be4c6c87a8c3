// What the runner calls, and what happens when modules are loaded. The agent runs inside the measured program; none of
// it is on the hot path.

const DRIVER = /^libcuda\.so(\.|$)/;
const INSTRUMENTS = /frida|libffm_(collector|remedy)/;
const RUNTIME = /^libcudart\.so/;

const WATCH = 2; // FFM_MODE_WATCH of modes.h
const HOST = 8; // FFM_MODE_HOST

let observer = null;

rpc.exports = {
  start(given) {
    configuration = given;
    loadCollector();
    for (const [, start, end] of instruments()) {
      collector.instrument(start, end.sub(start).toUInt32());
    }
    if (configuration.portion !== null && collector.limit !== null) {
      const { kind, from, until, every, name } = configuration.portion;
      collector.limit(kind, from, until, every, Memory.allocUtf8String(name));
    }
    if (configuration.kept !== 0 && collector.keep !== null) {
      collector.keep(configuration.kept);
    }
    if (configuration.translator !== null) {
      startTrace(configuration.translator);
    }
    guardLibrary();
    if ((configuration.mode & WATCH) !== 0) {
      collector.arrive();
    }
    if (!collector.followedName(configuration.mode, 0).isNull()) {
      hookFollowed();
    }
    if ((configuration.mode & HOST) !== 0) {
      hookAllocators();
    }
    observer = Process.attachModuleObserver({
      onAdded(module) {
        findPython(module);
        findClockModule(module);
        expectResults(module);
        if (INSTRUMENTS.test(module.name) || RUNTIME.test(module.name)) {
          collector.foreign(module.base, module.size, 0);
        }
        if (DRIVER.test(module.name)) {
          hookDriver(module);
        } else if (recording && watchesCounters()) {
          watchCounters(module);
        }
      },
      onRemoved() {
        collector.modulesChanged();
      },
    });
  },

  // Hooks stay in place, as other threads may be executing them, and lead to the originals. Returns the types of the
  // answers that threads still wait for.
  detach() {
    observer.detach();
    collector.detach();
    return leave();
  },
};

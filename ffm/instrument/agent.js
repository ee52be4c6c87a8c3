// Runs inside the measured program: loads the collector and puts its wrappers in place. Nothing here is on the hot path.

const DRIVER = /^libcuda\.so(\.|$)/;

let collector = null;
let configuration = null;
const WATCH = 2; // FFM_MODE_WATCH of collector.h
const INSTRUMENTS = /frida|libffm_/;
const RUNTIME = /^libcudart\.so/;

let recording = false; // only processes that load a driver leave a recording

rpc.exports = {
  start(given) {
    configuration = given;
    loadCollector();
    if (configuration.mode & WATCH) {
      hookLibrary();
    }
    Process.attachModuleObserver({
      onAdded(module) {
        if (INSTRUMENTS.test(module.name) || RUNTIME.test(module.name)) {
          collector.foreign(module.base, module.size, 0);
        }
        if (DRIVER.test(module.name)) {
          hookDriver(module);
        }
      },
      onRemoved() {
        collector.modulesChanged();
      },
    });
  },
};

function loadCollector() {
  const module = Module.load(configuration.collector);
  const bound = (name, result, parameters) =>
    new NativeFunction(module.getExportByName(name), result, parameters);
  collector = {
    open: bound("ffm_collector_open", "int", ["pointer", "uint", "pointer"]),
    wrapper: bound("ffm_collector_wrapper", "pointer", ["uint"]),
    bind: bound("ffm_collector_bind", "void", ["uint", "pointer", "pointer"]),
    isBound: bound("ffm_collector_is_bound", "bool", ["pointer"]),
    libraryName: bound("ffm_collector_library_name", "pointer", ["uint"]),
    libraryWrapper: bound("ffm_collector_library_wrapper", "pointer", ["uint"]),
    libraryBind: bound("ffm_collector_library_bind", "void", ["uint", "pointer"]),
    libraryIsBound: bound("ffm_collector_library_is_bound", "bool", ["uint"]),
    foreign: bound("ffm_collector_foreign", "void", ["pointer", "uint64", "bool"]),
    ask: bound("ffm_collector_ask", "void", ["pointer", "pointer", "pointer", "pointer"]),
    modulesChanged: bound("ffm_collector_modules_changed", "void", []),
    waitCallbacks: {
      onEnter: module.getExportByName("ffm_collector_wait_enter"),
      onLeave: module.getExportByName("ffm_collector_wait_leave"),
    },
    callCallbacks: {
      onEnter: module.getExportByName("ffm_collector_call_enter"),
      onLeave: module.getExportByName("ffm_collector_call_leave"),
    },
  };
}

// The C library's calls that the watch must see. A function that the library lacks has no caller either; what cannot be
// replaced is told.
function hookLibrary() {
  const library = Process.getModuleByName("libc.so.6");
  const failed = [];
  for (let place = 0; ; place++) {
    const name = collector.libraryName(place);
    if (name.isNull()) {
      break;
    }
    const address = library.findExportByName(name.readUtf8String());
    if (address === null || collector.libraryIsBound(place) || !(name.readUtf8String().match(/^(read|write|pread64|pwrite64|readv|writev|send|recv|sendto|recvfrom|sendmsg|recvmsg)$/))) {
      continue;
    }
    try {
      collector.libraryBind(place, Interceptor.replaceFast(address, collector.libraryWrapper(place)));
    } catch (error) {
      failed.push([name.readUtf8String(), error.message]);
    }
  }
  Interceptor.flush();
  if (failed.length > 0) {
    send({ type: "library", failed });
  }
}

// The observer runs inside the program's dlopen, before the driver is relocated: its code can be patched then, but not
// called, and nothing else can be loaded.

// What to hook in this driver: the runner knows the driver's build, and finds its wait function if it must.
function askForPlan(module) {
  send({ type: "driver", path: module.path });
  let plan = null;
  recv("plan", (message) => {
    plan = message;
  }).wait();
  return plan;
}

function hookDriver(module) {
  const plan = askForPlan(module);
  if (plan.refused !== null) {
    return;
  }
  if (!recording) {
    const folder = Memory.allocUtf8String(configuration.folder);
    const keys = configuration.plan === null ? NULL : Memory.allocUtf8String(configuration.plan);
    const status = collector.open(folder, configuration.mode, keys);
    if (status !== 0) {
      send({ type: "failed", status });
      return;
    }
    recording = true;
  }
  const orNull = (name) => module.findExportByName(name) ?? NULL;
  collector.foreign(module.base, module.size, 1);
  collector.ask(
    orNull("cuPointerGetAttribute"),
    orNull("cuFuncGetParamInfo"),
    orNull("cuKernelGetParamInfo"),
    orNull("cuCtxGetCurrent"),
  );
  const outcomes = [];
  const owners = new Map(); // address of hooked code -> name of the function
  for (const [index, name] of configuration.functions) {
    const address = module.findExportByName(name);
    if (address !== null) {
      outcomes.push([name, ...hookFunction(index, name, address, owners)]);
    }
  }
  if (plan.waitOffset !== null) {
    const address = module.base.add(plan.waitOffset);
    if (!collector.isBound(address)) {
      Interceptor.attach(address, collector.waitCallbacks);
    }
  }
  Interceptor.flush();
  send({ type: "hooks", outcomes });
}

// The outcome as [how, reason].
function hookFunction(index, name, address, owners) {
  const key = address.toString();
  if (owners.has(key)) {
    return ["shared", owners.get(key)];
  }
  owners.set(key, name);
  if (collector.isBound(address)) {
    return ["inherited", ""]; // a forked child keeps its parent's hooks
  }
  const wrapper = collector.wrapper(index);
  try {
    collector.bind(index, address, Interceptor.replaceFast(address, wrapper));
    return ["replace-fast", ""];
  } catch (error) {
    // Too short for a jump, or starts with one: attach needs less room. (Interceptor.replace would do too, but from its
    // replacement no unwinder finds the way out; from an attached callback one does, given the registers.)
    try {
      collector.bind(index, address, address); // called with the hook on, which then stands back
      Interceptor.attach(address, collector.callCallbacks);
      return ["attach", error.message];
    } catch (second) {
      return ["failed", `${error.message}; ${second.message}`];
    }
  }
}

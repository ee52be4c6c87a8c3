// Runs inside the measured program: loads the collector and puts its wrappers in place. Nothing here is on the hot path.

const DRIVER = /^libcuda\.so(\.|$)/;

const WATCH = 2; // FFM_MODE_WATCH of collector.h

let collector = null;
let configuration = null;
const INSTRUMENTS = /frida|libffm_collector/;
const RUNTIME = /^libcudart\.so/;

let recording = false; // only processes that load a driver leave a recording

rpc.exports = {
  start(given) {
    configuration = given;
    loadCollector();
    collector.arrive();
    if (configuration.mode & WATCH) {
      hookClocks();
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
    arrive: bound("ffm_collector_arrive", "void", []),
    open: bound("ffm_collector_open", "int", ["pointer", "uint", "pointer"]),
    wrapper: bound("ffm_collector_wrapper", "pointer", ["uint"]),
    bind: bound("ffm_collector_bind", "void", ["uint", "pointer", "pointer"]),
    isBound: bound("ffm_collector_is_bound", "bool", ["pointer"]),
    clockName: bound("ffm_collector_clock_name", "pointer", ["uint"]),
    clockWrapper: bound("ffm_collector_clock_wrapper", "pointer", ["uint"]),
    clockBind: bound("ffm_collector_clock_bind", "void", ["uint", "pointer"]),
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

// A function that the library lacks has no caller either.
function hookClocks() {
  const library = Process.getModuleByName("libc.so.6");
  for (let place = 0; ; place++) {
    const name = collector.clockName(place);
    if (name.isNull()) {
      break;
    }
    const address = library.findExportByName(name.readUtf8String());
    const wrapper = collector.clockWrapper(place);
    if (address !== null && !wrapper.isNull()) {
      collector.clockBind(place, Interceptor.replaceFast(address, wrapper));
    }
  }
  Interceptor.flush();
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

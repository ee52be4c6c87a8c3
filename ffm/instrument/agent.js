// Runs inside the measured program: loads the collector and puts its wrappers in place. Nothing here is on the hot path.

const DRIVER = /^libcuda\.so(\.|$)/;
const PYTHON = /^(lib)?python\d/; // the interpreter itself, not a program that has one linked in

let collector = null;
let configuration = null;
let pythonFound = false;
let recording = false; // only processes that load a driver leave a recording

rpc.exports = {
  start(given) {
    configuration = given;
    loadCollector();
    Process.attachModuleObserver({
      onAdded(module) {
        findPython(module);
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
  const exported = (name) => module.getExportByName(`${configuration.prefix}_${name}`);
  const bound = (name, result, parameters) => new NativeFunction(exported(name), result, parameters);
  collector = {
    open: bound("open", "int", ["pointer", "uint", "pointer"]),
    wrapper: bound("wrapper", "pointer", ["uint"]),
    bind: bound("bind", "void", ["uint", "pointer", "pointer"]),
    isBound: bound("is_bound", "bool", ["pointer"]),
    modulesChanged: bound("modules_changed", "void", []),
    python: module.findExportByName(`${configuration.prefix}_python`)
      && bound("python", "void", ["pointer", "pointer", "uint", "uint"]),
    waitCallbacks: {
      onEnter: exported("wait_enter"),
      onLeave: exported("wait_leave"),
    },
    callCallbacks: {
      onEnter: exported("call_enter"),
      onLeave: exported("call_leave"),
    },
  };
}

// Programs in Python: the collector reads the interpreter's frames, given where its functions and data are.
function findPython(module) {
  if (pythonFound || collector.python === null) {
    return;
  }
  const isMain = module.path === Process.mainModule.path; // its exports are found in the global scope only
  const exported = (name) => module.findExportByName(name) ?? (isMain ? Module.findGlobalExportByName(name) : null);
  const threadState = exported("PyGILState_GetThisThreadState");
  const version = threadState === null ? null : exported("Py_Version"); // since 3.11
  if (version === null) {
    return;
  }
  pythonFound = true;
  const home = Process.findModuleByAddress(threadState);
  const alone = home !== null && PYTHON.test(home.name);
  collector.python(threadState, exported("_PyRuntime") ?? NULL, version.readU32(), alone ? 1 : 0);
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
  const outcomes = [];
  const owners = new Map(); // address of hooked code -> name of the function
  for (const [index, name] of configuration.functions) {
    const exported = module.findExportByName(name);
    if (exported !== null) {
      // An entry that only jumps through a slot is hooked where it leads: the slot itself is not filled yet.
      const address = name in plan.entries ? module.base.add(plan.entries[name]) : exported;
      outcomes.push([name, ...hookFunction(index, name, address, owners)]);
    }
  }
  for (const offset of plan.waitOffsets) {
    const address = module.base.add(offset);
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

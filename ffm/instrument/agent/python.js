// Programs in Python: the collector reads the interpreter's frames; the agent tells it where functions and data are.

const PYTHON = /^(lib)?python\d/; // the interpreter itself, not a program that has one linked in

// Functions with which scripts read clocks. They are not exported, but are in tables by name (PyMethodDef).
const CLOCKS = ["time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
  "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns", "now", "utcnow", "today"];

// Modules of the interpreter with such functions, if they are files of their own.
const CLOCK_MODULES = /^(_datetime|time)\./;

let pythonFound = false;

function watchesClocks() {
  return collector.interpreterClock !== null && (configuration.mode & WATCH) !== 0;
}

function findClockModule(module) {
  if (watchesClocks() && CLOCK_MODULES.test(module.name)) {
    collector.interpreterCode(module.base, module.size, 1);
  }
}

function findPython(module) {
  if (pythonFound || collector.python === null) {
    return;
  }
  const isMain = module.path === Process.mainModule.path; // its exports are found only in the global scope
  const exported = (name) => module.findExportByName(name) ?? (isMain ? Module.findGlobalExportByName(name) : null);
  const threadState = exported("PyGILState_GetThisThreadState");
  const version = threadState === null ? null : exported("Py_Version"); // since 3.11
  if (version === null) {
    return;
  }
  pythonFound = true;
  const home = Process.findModuleByAddress(threadState);
  const alone = home !== null && PYTHON.test(home.name);
  if (home !== null && watchesClocks()) {
    clockFunctions(home).forEach((address) => collector.interpreterClock(address));
    if (alone) {
      collector.interpreterCode(home.base, home.size, 0);
    }
  }
  collector.python(threadState, exported("_PyRuntime") ?? NULL, version.readU32(), alone ? 1 : 0);
}

function clockFunctions(module) {
  const names = new Set();
  for (const range of module.enumerateRanges("r--")) {
    for (const name of CLOCKS) {
      const text = Array.from(name, (letter) => letter.charCodeAt(0).toString(16)).join(" ");
      Memory.scanSync(range.base, range.size, `${text} 00`).forEach(({ address }) => names.add(address.toString()));
    }
  }
  const code = module.enumerateRanges("--x");
  const isCode = (address) => code.some(({ base, size }) => address.compare(base) >= 0 && address.compare(base.add(size)) < 0);
  const found = [];
  for (const name of names) {
    const bytes = Array.from({ length: 8 }, (_, place) => ptr(name).shr(8 * place).and(0xff).toString(16).padStart(2, "0"));
    for (const range of module.enumerateRanges("r--").filter(({ protection }) => !protection.includes("x"))) {
      for (const { address } of Memory.scanSync(range.base, range.size, bytes.join(" "))) {
        const target = address.add(Process.pointerSize);
        if (target.compare(range.base.add(range.size)) < 0 && isCode(target.readPointer())) {
          found.push(target.readPointer());
        }
      }
    }
  }
  return found;
}

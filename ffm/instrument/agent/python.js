// Programs in Python: the collector reads the interpreter's frames; the agent tells it where functions and data are.

const PYTHON = /^(lib)?python\d/; // the interpreter itself, not a program that has one linked in

// Where CPython waits for locks, up to 3.12 and later.
const INTERPRETER_LOCKS = ["PyThread_acquire_lock_timed", "_PyMutex_LockTimed", "_PySemaphore_Wait"];

let pythonFound = false;

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
  if (collector.interpreterLock !== null) {
    for (const name of INTERPRETER_LOCKS) {
      collector.interpreterLock(exported(name) ?? NULL);
    }
  }
  collector.python(threadState, exported("_PyRuntime") ?? NULL, version.readU32(), alone ? 1 : 0);
}

// What threads of the program wait for the runner to answer. Once it leaves the program, nobody answers any more.

let attended = true;
const awaited = []; // the types of answers that threads wait for

// Tell the runner something, and return its answer of a type; null if it has left the program.
function ask(message, type) {
  let answer = null;
  if (attended) {
    awaited.push(type);
    send(message);
    recv(type, (found) => {
      answer = found;
    }).wait();
    awaited.splice(awaited.indexOf(type), 1);
  }
  return answer;
}

// Wait until the runner knows something: a process that ends soon would take a message with it.
function tell(message) {
  ask(message, "noted");
}

// Ask nothing from now on. Returns the types of the answers that the runner still owes.
function leave() {
  attended = false;
  return awaited.slice();
}

// Ends a process with one line if its Node.js is too old for Portico: `node -r @portico/core/needed-node src/main.ts`. Loaded before the
// program, because an older Node.js fails while it loads the program. It must be read by the very versions that it refuses.
"use strict";
var needed = [22, 19];
var running = process.versions.node.split(".").map(Number);
if (running[0] < needed[0] || (running[0] === needed[0] && running[1] < needed[1])) {
  console.error("Portico needs Node.js " + needed.join(".") + " or newer; this is " + process.versions.node + ".");
  process.exit(69);
}

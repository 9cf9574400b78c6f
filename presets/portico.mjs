#!/usr/bin/env node
// Plain old JavaScript: it must be read by the very versions of Node.js that it refuses.
var needed = [22, 18];
var running = process.versions.node.split(".").map(Number);
if (running[0] < needed[0] || (running[0] === needed[0] && running[1] < needed[1])) {
  console.error("Portico needs Node.js " + needed.join(".") + " or newer; this is " + process.versions.node + ".");
  process.exit(69);
} else {
  import("./src/cli/main.ts").then(function (cli) {
    return cli.main(process.argv.slice(2));
  });
}

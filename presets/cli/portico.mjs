#!/usr/bin/env node
// Nothing newer than the JavaScript of Node.js 12.20: it must be read by the very versions that it refuses.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

// A checkout installs the Node.js that it needs. An older Node.js runs the command line there, and passes signals and the exit code on.
const own = fileURLToPath(new URL("../../node_modules/node/bin/node", import.meta.url));
const isOld = process.versions.node.split(".")[0] < 22 && !("Deno" in globalThis) && !("Bun" in globalThis);
if (isOld && own !== process.execPath && existsSync(own)) {
  const child = spawn(own, process.argv.slice(1), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(signal ? 1 : code));
} else {
  import("@portico/core/needed-node").then(run);
}

function run() {
  // V8 lets the space for young objects grow to 128 MiB, and keeps it there under load. A service is as fast with 32 MiB, and slower with less. V8
  // reads this size only when the process starts, so the process starts itself again with it: the process id stays. A size of the user's own has
  // priority. A process with a channel to its parent would lose it, and Windows cannot replace a process.
  const YOUNG = "--max-semi-space-size=16";
  const isSized = /max[-_]semi[-_]space[-_]size/.test([...process.execArgv, process.env.NODE_OPTIONS].join(" "));
  const canStartAgain = typeof process.execve === "function" && process.platform !== "win32" && !process.connected;
  const isNode = !("Deno" in globalThis || "Bun" in globalThis);
  if (process.argv[2] === "start" && isNode && !isSized && canStartAgain) {
    const args = [...process.execArgv, YOUNG, ...process.argv.slice(1)];
    process.execve(process.execPath, [process.execPath, ...args], process.env);
  }

  // What was compiled once is kept beside the package, where that can be written: every later start takes half the time.
  Promise.all([import("node:module"), import("node:url")])
    .then(([module, url]) =>
      module.enableCompileCache(url.fileURLToPath(new URL("./node_modules/.cache/portico", import.meta.url))),
    )
    .catch(() => {})
    .then(() => import("#main"))
    .then((cli) => cli.main(process.argv.slice(2)));
}

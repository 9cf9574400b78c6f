// Loaded into a service before its own code: what happens between the last check of an agent.json and its rename.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const rename = fs.renameSync;
fs.renameSync = (from, to) => {
  if (String(to).endsWith("/agent.json")) {
    if (process.env["PORTICO_TEST_AT_RENAME"] === "kill") process.kill(process.pid, "SIGKILL");
    // Blocks as a slow disk does.
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  }
  rename(from, to);
};
syncBuiltinESMExports();

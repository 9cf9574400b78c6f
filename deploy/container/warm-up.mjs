// Starts and stops the service once, while the image is built. Node.js keeps the compiled code in the image, because a container with a
// read-only root file system could not keep it.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "warm-up-"));
const env = { ...process.env, PORTICO_DATA_DIR: folder, PORTICO_AUTO_PROVIDERS: "false" };
const launcher = join(import.meta.dirname, "node_modules/portico/portico.mjs");
const service = spawn(process.execPath, [launcher, "start", "local", "--json"], {
  cwd: folder,
  env,
  stdio: ["ignore", "pipe", "inherit"],
});
service.stdout.once("data", () => service.kill("SIGTERM"));
service.once("exit", (code) => {
  rmSync(folder, { recursive: true });
  process.exitCode = code ?? 1;
});

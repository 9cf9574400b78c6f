/**
 * The container image of `deploy/container`: `npm run bench:container`, as root on a Debian with buildah. Builds the image, and starts the
 * preset `local` in it, each time with a new volume.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type BuiltImage, buildImage, runImage } from "../harness/buildah.ts";

const STARTS = 11;
const MIB = 1024 * 1024;

const folder = mkdtempSync(join(tmpdir(), "portico-bench-container-"));
await using image = await buildImage(folder);
console.log(
  `node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? "unknown"}), load ${loadavg()[0]!.toFixed(1)}\n`,
);
const { base, whole } = image.bytes;
console.log(`files of the base image ${(base / MIB).toFixed(0)} MiB, of Portico ${((whole - base) / MIB).toFixed(0)} MiB\n`);
console.log("start | ready after ms | resident MiB | stop ms");
await measureStarts(image);

async function measureStarts(built: BuiltImage): Promise<void> {
  const env = Object.fromEntries(["PROXY", "WORKFLOW", "AGENT", "PROBES"].map((surface) => [`PORTICO_${surface}_PORT`, "0"]));
  const rows: number[][] = [];
  // The first start reads the image from the disk.
  for (let start = 0; start <= STARTS; start++) {
    const data = join(folder, `data-${start}`);
    const begun = performance.now();
    await using container = runImage(built, { data, env, command: ["start", "local", "--json"] });
    while (!container.stdout().includes("\n")) await wait(1);
    const ready = performance.now() - begun;
    await wait(1000);
    const [, resident] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${container.pid}/status`, "utf8"))!;
    const stopped = performance.now();
    process.kill(container.pid, "SIGTERM");
    await container.ended;
    const row = [ready, Number(resident) / 1024, performance.now() - stopped];
    console.log(`${start === 0 ? "first" : start} | ${row.map((value) => value.toFixed(0)).join(" | ")}`);
    if (start > 0) rows.push(row);
    rmSync(data, { recursive: true });
  }
  const median = (values: readonly number[]) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
  console.log(`median | ${[0, 1, 2].map((at) => median(rows.map((row) => row[at]!)).toFixed(0)).join(" | ")}`);
}

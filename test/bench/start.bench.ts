/**
 * Measures how long `portico start --json` takes until every listener is ready: `npm run bench:start`, about two minutes. The packages are
 * built, packed and installed into an empty project, as users do; other packages come from the registry. The presets and a bare Node.js
 * take turns, so that other load on the machine affects all of them.
 */
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { buildPackages } from "../../release/build-packages.ts";
import { createProject } from "../../release/empty-project.ts";
import { packPackages } from "../../release/pack-packages.ts";
import { startService } from "../../release/start-service.ts";

const PRESETS = ["proxy", "workflow", "agent", "local"];
const ROUNDS = 15;
const NAMES = { first: "first start", next: "next starts" };

const work = await mkdtemp(join(tmpdir(), "portico-bench-start-"));
try {
  const built = await buildPackages(join(work, "built"));
  const needed = built.filter(({ name }) => !/client|test/.test(name)).map(({ folder }) => folder);
  await using project = await createProject(join(import.meta.dirname, "../../release/trial"));
  await project.install((await packPackages(needed, work)).map(({ path }) => path));
  const launcher = join(project.folder, "node_modules/portico/portico.mjs");

  /** Milliseconds from starting the program to its ready line. */
  const start = async (preset: string) => {
    const folder = join(work, preset);
    await mkdir(folder, { recursive: true });
    const begun = performance.now();
    await using service = await startService([process.execPath, launcher, "start", preset, "--json"], folder);
    const took = performance.now() - begun;
    await service.stop();
    return took;
  };

  const cores = `${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})`;
  console.log(`node ${process.version}, ${cores}, load ${loadavg()[0]!.toFixed(1)}\n`);
  const bare: number[] = [];
  const first = new Map<string, number>();
  const next = new Map<string, number[]>(PRESETS.map((preset) => [preset, []]));
  for (const preset of PRESETS) {
    // Node.js caches compiled code from this start on. This start has no cached code, as after an installation.
    await rm(join(project.folder, "node_modules/portico/node_modules"), { recursive: true, force: true });
    first.set(preset, await start(preset));
  }
  for (const preset of PRESETS) await start(preset);
  for (let round = 0; round < ROUNDS; round++) {
    bare.push(startBare());
    for (const preset of PRESETS) next.get(preset)!.push(await start(preset));
  }

  console.log(`preset    | ${NAMES.first}, ms | ${NAMES.next}, median ms | fastest | slowest | median ÷ bare node`);
  for (const [preset, times] of next) {
    const cells = [first.get(preset)!, median(times), Math.min(...times), Math.max(...times)].map((ms) => ms.toFixed(0));
    console.log(`${preset.padEnd(9)} | ${cells.join(" | ")} | ${(median(times) / median(bare)).toFixed(1)}`);
  }
  console.log(
    `node -e "" |  | ${median(bare).toFixed(0)} | ${Math.min(...bare).toFixed(0)} | ${Math.max(...bare).toFixed(0)} | 1.0`,
  );
  console.log(`\nload ${loadavg()[0]!.toFixed(1)} at the end`);
} finally {
  await rm(work, { recursive: true, force: true });
}

function startBare(): number {
  const begun = performance.now();
  spawnSync(process.execPath, ["-e", ""]);
  return performance.now() - begun;
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1]!;
}

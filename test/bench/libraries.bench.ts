// Measures the cost of loading the libraries that docs/architecture.md gives reasons for: each in fresh processes, one after another.
import { execFileSync } from "node:child_process";

/** What is imported, by the name in the table. */
const imports: Readonly<Record<string, readonly string[]>> = {
  "crossws, with its Node adapter": ["crossws/adapters/node"],
  "socket.io and engine.io": ["socket.io", "engine.io"],
  listhen: ["listhen"],
  "unstorage's driver for folders": ["unstorage/drivers/fs"],
  unstorage: ["unstorage"],
  "db0, and unstorage's driver for it": ["db0", "db0/connectors/node-sqlite", "unstorage/drivers/db0"],
};
const ROUNDS = 15;

const measure = (names: readonly string[]): { readonly ms: number; readonly mib: number } => {
  const program = `
    globalThis.gc();
    const before = process.memoryUsage.rss();
    const begun = performance.now();
    for (const name of ${JSON.stringify(names)}) await import(name);
    const ms = performance.now() - begun;
    globalThis.gc();
    console.log(JSON.stringify({ ms, mib: (process.memoryUsage.rss() - before) / 2 ** 20 }));`;
  const args = ["--expose-gc", "--input-type=module", "--eval", program];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: import.meta.dirname, encoding: "utf8" }));
};
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

const rounds = new Map(Object.keys(imports).map((name) => [name, [] as { ms: number; mib: number }[]]));
// The libraries take turns, so that other load on the machine affects all of them.
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, names] of Object.entries(imports)) rounds.get(name)!.push(measure(names));
}
console.log("| loaded | ms, least | ms, median | MiB, median |\n| --- | --- | --- | --- |");
for (const [name, found] of rounds) {
  const times = found.map(({ ms }) => ms);
  const memory = median(found.map(({ mib }) => mib));
  console.log(`| ${name} | ${Math.min(...times).toFixed(0)} | ${median(times).toFixed(0)} | ${memory.toFixed(1)} |`);
}

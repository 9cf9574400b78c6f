import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "./repository.ts";

/**
 * The files that an action may enter, from its beginning to its end: what a reader who follows it has to open. Lower a limit with each step
 * that shortens a path. It is a few files above what was counted, because other work of the process may run at the same time. A feature that lengthens one must be worth it. Behind a limit: what is wanted.
 */
const LIMITS: Readonly<Record<string, number>> = {
  // Asked turns have an adapter of their own, with the kind of their work. Senders of webhooks have their routes and records. Runs of
  // workflows wait in lists: for turns, and for further triggers. Memories and prompts of agents, events for which workflows wait, and what
  // users say to running turns have their routes and records. Counts of runs, and the steps of receipts, have a contract and a route each.
  "`createApp(local)`": 356, // 300
  "a same-protocol call": 60, // 45
  // What is made valid for a model stands in a file for each part: names, ids, schemas, images, thinking. A refused part is left out once.
  // The last use of a safe token is kept in a file of its own.
  "a converted call": 90, // 65
  "a converted stream": 92,
  // Agents' requests are written and read by the conversion, in place of two libraries, whose files did not count.
  // Events that arrive are listed, with and without their turns, and a receipt keeps the steps of its turn.
  "a webhook to its run's end": 158, // 100
  "a trigger to its run's end": 110, // 90
  // A receipt keeps the answers and outputs of its turn, with credentials masked.
  "a query to its receipt, with the client": 178, // 120
};

it("no action enters more files than its limit", { timeout: 180_000 }, async () => {
  const bench = resolve(root, "test/bench/walks.bench.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [bench], { cwd: root });
  const entered = new Map([...stdout.matchAll(/^(.+): (\d+) files/gm)].map(([, name, files]) => [name!, Number(files)]));
  expect([...entered.keys()]).toEqual(Object.keys(LIMITS));
  expect([...entered].filter(([name, files]) => files > LIMITS[name]!)).toEqual([]);
});

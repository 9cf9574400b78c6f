import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../harness/ports.ts";
import { cpuOf, endsWithThis, startWorker } from "../proxy/child.ts";
import type { ContestantJob, ContestantName, ContestantResult } from "../workflow/contestant.ts";
import type { Servers } from "./servers.ts";

/** Packages of the engines that `measureOther` runs, for `installEngines`. */
export const OTHER_PACKAGES = [
  "bullmq@6.7.0",
  "ioredis@5",
  "@dbos-inc/dbos-sdk@5.3.0",
  "@restatedev/restate-sdk@1.17.2",
  "@restatedev/restate-server@1.7.12",
] as const;

/** Milliseconds of processor time that a run of five durable steps costs another engine. */
export interface OtherCosts {
  readonly perSecond: number;
  readonly node: number;
  readonly postgres: number;
  readonly redis: number;
  /** Of the engine's own server. */
  readonly own: number;
}

const CLIENTS = 50;

/** Runs of an engine in a process of its own, 50 at a time, each until its end. Rejects if the engine cannot be started. */
export async function measureOther(
  servers: Servers,
  name: Extract<ContestantName, "bullmq" | "dbos" | "restate">,
  packages: string,
  runs: number,
): Promise<OtherCosts> {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-cluster-"));
  const own = name === "restate" ? await startRestate(packages, dataDir) : undefined;
  const databaseUrl = new URL(servers.postgresUrl);
  databaseUrl.pathname = "/bench_dbos";
  Object.assign(process.env, { BENCH_POSTGRES_URL: databaseUrl.href, BENCH_REDIS_URL: servers.redisUrl });
  // Log lines of other engines are not part of the report.
  Object.assign(process.env, { NODE_NO_WARNINGS: "1", RESTATE_LOGGING: "ERROR" });
  const worker = startWorker<ContestantJob, ContestantResult>(new URL("../workflow/contestant.ts", import.meta.url));
  const times = () => ({ node: cpuOf(worker.pid)! / 1000, own: own ? cpuOf(own.pid)! / 1000 : 0, ...servers.spent() });
  try {
    await worker.run({ do: "open", name, packages, dataDir, steps: 5 });
    await worker.run({ do: "finish", runs: Math.ceil(runs / 4), concurrency: CLIENTS });
    const before = times();
    const { perSecond = Number.NaN } = await worker.run({ do: "finish", runs, concurrency: CLIENTS });
    const after = times();
    const per = (key: keyof typeof after) => (after[key] - before[key]) / runs;
    return { perSecond, node: per("node"), postgres: per("postgres"), redis: per("redis"), own: per("own") };
  } finally {
    await worker.stop();
    own?.kill();
    rmSync(dataDir, { recursive: true, maxRetries: 10 });
  }
}

/** Restate's server on free ports. Its addresses are in the environment, which the contestant's process inherits. */
async function startRestate(packages: string, dataDir: string): Promise<{ readonly pid: number; kill(): void }> {
  const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()];
  // The program itself: the package's own command starts it as a child.
  const program = `node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`;
  const child = spawn(join(packages, program), ["--no-logo"], {
    stdio: "ignore",
    env: {
      ...process.env,
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_BIND_IP: "127.0.0.1",
      RESTATE_BASE_DIR: dataDir,
      RESTATE_BIND_PORT: `${node}`,
      RESTATE_INGRESS__BIND_PORT: `${ingress}`,
      RESTATE_ADMIN__BIND_PORT: `${admin}`,
      RESTATE_DISABLE_TELEMETRY: "true",
    },
  });
  endsWithThis(child);
  child.on("error", () => {});
  const [ingressUrl, adminUrl] = [`http://127.0.0.1:${ingress}`, `http://127.0.0.1:${admin}`];
  Object.assign(process.env, { BENCH_RESTATE_INGRESS: ingressUrl, BENCH_RESTATE_ADMIN: adminUrl });
  const isUp = async (url: string) => (await fetch(url).catch(() => undefined))?.ok === true;
  for (let tries = 0; !((await isUp(`${adminUrl}/health`)) && (await isUp(`${ingressUrl}/restate/health`))); tries++) {
    if (child.pid === undefined || child.exitCode !== null || tries > 300) throw new Error("its server did not start");
    await sleep(200);
  }
  return { pid: child.pid!, kill: () => void child.kill("SIGKILL") };
}

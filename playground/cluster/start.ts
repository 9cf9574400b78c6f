// Three processes of one instance on this machine, behind a balancer: node playground/cluster/start.ts
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { startBalancer } from "./balancer.ts";
import { findServers } from "./servers.ts";
import { startStoryteller } from "./storyteller.ts";

export const OWNER_TOKEN = "the-token-of-the-owner";
export const WORKFLOW_TOKEN = "the-token-of-workflows";
const SURFACES = ["proxy", "workflow", "agent"] as const;
const PORTICO = join(import.meta.dirname, "../../node_modules/.bin/portico");

/** The agents and workflow definitions that the command below puts into the database. */
const documents = {
  "agents/teller/agent.json": { name: "Teller", provider: "storyteller", model: "slow" },
  "workflows/errand.json": {
    nodes: {
      leave: { type: "transform", with: { value: "out" } },
      walk: { type: "wait", needs: ["leave"], with: { for: "4s" } },
      arrive: { type: "transform", needs: ["walk"], with: { value: "home" } },
    },
    outputs: { now: "${{ nodes.arrive.output }}" },
  },
};

/** One process, and where it listens itself. */
export interface StoryProcess {
  readonly child: ChildProcess;
  readonly urls: Readonly<Record<string, string>>;
}

/** Starts the cluster. Throws a text that says how to start a server that is missing. */
export async function startCluster(count = 3) {
  const servers = await findServers();
  const folder = mkdtempSync(join(tmpdir(), "portico-story-"));
  const storyteller = await startStoryteller();
  const balancers = await Promise.all(SURFACES.map(async (surface) => ({ surface, balancer: await startBalancer() })));
  const urls = Object.fromEntries(balancers.map(({ surface, balancer }) => [surface, balancer.url]));
  const env = {
    ...{ PATH: process.env["PATH"], HOME: process.env["HOME"], ...servers },
    PORTICO_POSTGRES_SCHEMA: "portico_story",
    PORTICO_REDIS_PREFIX: "portico-story",
    PORTICO_CLUSTER_BLOBS_DIR: join(folder, "blobs"),
    // Secrets of a story. Yours come from a secret store, and have 32 random bytes.
    PORTICO_INSTANCE_KEY: Buffer.alloc(32, "story").toString("base64url"),
    PORTICO_AGENT_TOKENS: JSON.stringify([{ token: OWNER_TOKEN, userId: "owner", role: "owner" }]),
    WORKFLOW_SERVICE_TOKEN: WORKFLOW_TOKEN,
    PORTICO_PROVIDERS: JSON.stringify([
      { id: "storyteller", protocol: "chat-completions", baseUrl: storyteller.url, models: ["slow"] },
    ]),
    PORTICO_LOG_LEVEL: "warn",
    ...Object.fromEntries(SURFACES.map((surface) => [`PORTICO_${surface.toUpperCase()}_PUBLIC_URL`, urls[surface]])),
  };
  const portico = (...args: readonly string[]) =>
    spawn(process.execPath, [PORTICO, ...args], {
      cwd: folder,
      env,
      stdio: ["ignore", args[0] === "start" ? "pipe" : "ignore", "inherit"],
    });
  const run = async (...args: readonly string[]) => {
    const [code] = await once(portico(...args), "exit");
    if (code !== 0) throw new Error(`portico ${args[0]} ended with ${code}`);
  };
  const processes: StoryProcess[] = [];
  const close = async (): Promise<void> => {
    const alive = processes.filter(({ child }) => child.exitCode === null && child.signalCode === null);
    await Promise.all(
      alive.map(({ child }) => {
        child.kill("SIGTERM");
        return once(child, "close");
      }),
    );
    for (const { balancer } of balancers) balancer.close();
    storyteller.close();
    rmSync(folder, { recursive: true, force: true });
  };

  try {
    await run("migrate");
    for (const [name, document] of Object.entries(documents)) {
      const path = join(folder, "documents", name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, JSON.stringify(document));
    }
    await run("documents", "push", "documents", "--force");
    await Promise.all(
      Array.from({ length: count }, async () => {
        const child = portico("start", "cluster", "--json");
        const line = await Promise.race([
          once(createInterface(child.stdout!), "line"),
          once(child, "close").then(([code]) => Promise.reject(new Error(`portico start ended with ${code}`))),
        ]);
        const { listeners } = JSON.parse(line[0] as string) as { listeners: Record<string, { url: string }> };
        processes.push({
          child,
          urls: Object.fromEntries(Object.entries(listeners).map(([surface, { url }]) => [surface, url])),
        });
      }),
    );
    for (const { surface, balancer } of balancers) balancer.use(processes.map((each) => each.urls[surface]!));
    return { urls, processes, close };
  } catch (error) {
    await close();
    throw error;
  }
}

if (import.meta.main) {
  const cluster = await startCluster().catch((error: Error) => {
    console.error(error.message);
    process.exit(1);
  });
  console.log(`Three processes serve one instance: ${cluster.processes.map(({ child }) => child.pid).join(", ")}.`);
  console.log(`Console: ${cluster.urls["agent"]}/ (sign in with ${OWNER_TOKEN}; the token of workflows is ${WORKFLOW_TOKEN})`);
  console.log("Stop one of them with kill -9, and see what changes. Stop all with Ctrl-C.");
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void cluster.close().then(() => process.exit()));
  }
}

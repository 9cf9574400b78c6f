import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { createApp, ports, Secret } from "@portico/core";
import { createGrants } from "@portico/plugins/workflow-service/grants";
import { afterAll, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { SERVICE_TOKEN } from "../harness/workflow-app.ts";
import { everyNode, ONCE } from "./every-node.ts";

const LIVES = process.env.PORTICO_LONG ? 20 : 2;
const RUNS = process.env.PORTICO_LONG ? 200 : 30;

const folders: ReturnType<typeof temporaryFolder>[] = [];
const children: ChildProcess[] = [];
const servers: Server[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  for (const server of servers) server.close();
  for (const folder of folders) folder.remove();
});

it(
  `${LIVES} kills at random instants under ${RUNS} runs with every kind of node: each is completed, or interrupted at a node that may not be repeated; none of those ran twice, and history says what happened`,
  async () => {
    const seen: { name: string; run: string }[] = [];
    const server = createServer((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        seen.push({ name: request.url!.slice(1), run: (JSON.parse(text) as { run: string }).run });
        setTimeout(() => response.end("{}"), Math.random() * 5);
      });
    }).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    const effects = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const folder = temporaryFolder();
    folders.push(folder);
    const happened = join(folder.path, "happened");
    mkdirSync(join(folder.path, "workflows"));
    for (const [name, definition] of Object.entries(everyNode({ effects, tool: "mark", wait: "30ms" })))
      writeFileSync(join(folder.path, "workflows", `${name}.json`), JSON.stringify(definition));
    const approve = await approver();
    const accepted = new Set<string>();
    let service = await begin(folder.path, happened, effects);
    for (let life = 0; life <= LIVES; life++) {
      if (life > 0) service = await begin(folder.path, happened, effects);
      const { child, url } = service;
      const over = new AbortController();
      const sender = (async () => {
        while (!over.signal.aborted && accepted.size < (RUNS * (life + 1)) / (LIVES + 1)) {
          const runId = await trigger(url, accepted.size, over.signal).catch(() => undefined);
          if (runId !== undefined) accepted.add(runId);
        }
      })();
      if (life === LIVES) {
        await sender;
        break;
      }
      const approving = (async () => {
        while (!over.signal.aborted) {
          await approve(url).catch(() => {});
          await sleep(20);
        }
      })();
      const exited = once(child, "exit");
      await Promise.race([sender, sleep(3000)]);
      setTimeout(() => child.kill("SIGKILL"), 50 + Math.random() * 700);
      await exited;
      over.abort();
      await Promise.all([sender, approving]);
    }

    const { url, child } = service;
    let runs = await runsOf(url);
    while (runs.some(({ status }) => status === "running" || status === "waiting_human")) {
      await approve(url);
      await sleep(50);
      runs = await runsOf(url);
    }
    expect(accepted.size).toBe(RUNS);
    const listed = new Set(runs.map(({ runId }) => runId));
    expect(
      [...accepted].filter((runId) => !listed.has(runId)),
      "nothing accepted is lost",
    ).toEqual([]);
    const lines = readFileSync(happened, "utf8").split("\n").filter(Boolean);
    const ended: Record<string, number> = {};
    for (const { runId } of runs) {
      const detail = await get(url, `/api/workflow/main/runs/${runId}`);
      ended[detail.status] = (ended[detail.status] ?? 0) + 1;
      const done = {
        http: seen.filter(({ name, run }) => name === "call" && run === runId).length,
        tool: lines.filter((line) => line === `tool ${runId}`).length,
        agent: lines.filter((line) => line === `agent ${runId}`).length,
      };
      for (const [node, kind] of Object.entries(ONCE)) {
        expect(done[kind], `${node} of ${runId} ran once at most`).toBeLessThanOrEqual(1);
        if (detail.nodeResults[node]?.status === "completed")
          expect(done[kind], `${node} of ${runId}, which history has`).toBe(1);
        if (detail.nodeResults[node]?.status === "skipped") expect(done[kind]).toBe(0);
      }
      if (detail.status === "interrupted") {
        expect(Object.keys(ONCE)).toContain(detail.error.nodeId);
        expect(detail.error.code).toBe("process_restart");
        continue;
      }
      expect([detail.status, detail.error]).toEqual(["completed", undefined]);
      expect([detail.finalOutputs.each, detail.finalOutputs.sub]).toEqual([[200, 200, 200], 200]);
      expect(Object.values(detail.nodeResults).filter(({ status }: any) => status === "running" || status === "waiting")).toEqual(
        [],
      );
    }
    // Most of them succeed.
    expect(ended["completed"]).toBeGreaterThan(RUNS / 4);
    child.kill("SIGKILL");
  },
  60_000 + LIVES * 20_000 + RUNS * 500,
);

async function begin(dataDir: string, happened: string, effects: string) {
  const child = fork(join(import.meta.dirname, "processes/workflow-service.ts"), [dataDir, happened, effects]);
  children.push(child);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

const headers = { "content-type": "application/json", "x-workflow-service-token": SERVICE_TOKEN };

async function trigger(url: string, n: number, signal: AbortSignal): Promise<string | undefined> {
  const body = JSON.stringify({ n });
  const answer = await fetch(`${url}/api/workflow/webhook?id=main`, { method: "POST", headers, body, signal });
  const { runId } = (await answer.json()) as { runId?: string };
  return runId;
}

async function get(url: string, path: string): Promise<any> {
  const answer = await fetch(`${url}${path}`, { headers });
  expect(answer.status).toBe(200);
  return answer.json();
}

async function runsOf(url: string): Promise<readonly { readonly runId: string; readonly status: string }[]> {
  return (await get(url, "/api/workflow/main/runs")).runs;
}

/** Approves every waiting gate. */
async function approver(): Promise<(url: string) => Promise<void>> {
  const key = new Secret("a key of this test");
  const app = await createApp({ name: "grants", adapters: [hmacSigning({ key }), systemClock(), randomIds()] });
  const grants = createGrants({ signing: app.port(ports.signing), clock: app.port(ports.clock), ids: app.port(ports.ids) });
  return async (url) => {
    const waiting = (await runsOf(url)).filter(({ status }) => status === "waiting_human");
    const { executionGrantId } = await grants.issue({ workflowId: "main" });
    for (const { runId } of waiting) {
      const body = JSON.stringify({ decision: "approve" });
      const own = { ...headers, "x-execution-grant": executionGrantId };
      await (await fetch(`${url}/api/workflow/main/runs/${runId}/gate`, { method: "POST", headers: own, body })).arrayBuffer();
    }
  };
}

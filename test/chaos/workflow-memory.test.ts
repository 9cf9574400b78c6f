import { type ChildProcess, fork } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { randomIds } from "@portico/adapters/ids/random";
import { systemClock } from "@portico/adapters/clock/system";
import { createApp, ports, Secret } from "@portico/core";
import { createGrants } from "@portico/plugins/workflow-service/grants";
import { afterAll, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { SERVICE_TOKEN } from "../harness/workflow-app.ts";

const MEBIBYTE = 1024 * 1024;
const WAITING = process.env.PORTICO_LONG ? 1_000 : 150;
const FILE_BYTES = 200 * MEBIBYTE;
const ITEMS = process.env.PORTICO_LONG ? 10_000 : 1_500;

const folders: ReturnType<typeof temporaryFolder>[] = [];
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  for (const folder of folders) folder.remove();
});

const definitions = {
  "gated.json": {
    nodes: {
      a: { type: "transform", with: { value: "x".repeat(2_000) } },
      ok: { type: "human_gate", needs: ["a"], with: { title: "Go on?", timeout: "30d" } },
    },
  },
  "map.json": {
    nodes: {
      all: {
        type: "map",
        with: {
          items: "${{ parameters.list }}",
          nodes: {
            a: { type: "repeatable", with: { say: "${{ item }}" } },
            b: { type: "transform", needs: ["a"], with: { value: { item: "${{ item }}", text: "y".repeat(1_000) } } },
          },
          result: "${{ item }}",
        },
      },
    },
    outputs: { size: "${{ size(nodes.all.output) }}" },
  },
  "fetch.json": {
    parameters: { type: "object", properties: { url: { type: "string" } } },
    nodes: { a: { type: "http", with: { url: "${{ parameters.url }}", response: "file" } } },
  },
  "wide.json": {
    nodes: Object.fromEntries(
      Array.from({ length: 500 }, (_, at) => [
        `n${at}`,
        {
          type: "transform",
          ...(at >= 10 && { needs: [`n${at - 10}`] }),
          with: { value: at >= 10 ? `\${{ nodes.n${at - 10}.output + 1 }}` : 0 },
        },
      ]),
    ),
    outputs: { last: "${{ nodes.n499.output }}" },
  },
};

it(`${WAITING} runs that wait at gates cost no memory beyond their records, survive a kill, and all go on`, async () => {
  const dataDir = newFolder();
  let service = await begin(dataDir);
  const trigger = (count: number) => all(count, () => call(service.url, "POST", "/api/workflow/webhook?id=gated", {}));
  await trigger(50);
  await waiting(service.url, 50);
  const before = await settledHeap(service.child);
  await trigger(WAITING - 50);
  await waiting(service.url, WAITING);
  const after = await settledHeap(service.child);
  // The executions with their outputs would need several times this memory.
  expect((after - before) / WAITING).toBeLessThan(4 * 1024);

  service.child.kill("SIGKILL");
  await once(service.child, "exit");
  service = await begin(dataDir);
  expect((await settledHeap(service.child)) - before).toBeLessThan(8 * MEBIBYTE);
  const headers = { "x-execution-grant": await newGrant("gated") };
  const { runs } = await call(service.url, "GET", "/api/workflow/gated/runs");
  expect(runs.filter(({ status }: any) => status === "waiting_human")).toHaveLength(WAITING);
  let next = 0;
  await all(WAITING, () =>
    call(service.url, "POST", `/api/workflow/gated/runs/${runs[next++].runId}/gate`, { decision: "approve" }, headers),
  );
  for (;;) {
    const listed = (await call(service.url, "GET", "/api/workflow/gated/runs")).runs;
    if (listed.every(({ status }: any) => status === "completed")) break;
    expect(listed.filter(({ status }: any) => status === "failed")).toEqual([]);
    await sleep(50);
  }
}, 120_000);

it(`a map over ${ITEMS} items and a definition of 500 nodes run with flat memory`, async () => {
  const { url, child } = await begin(newFolder());
  const finish = async (workflowId: string, parameters: object) => {
    const { runId } = await call(url, "POST", `/api/workflow/webhook?id=${workflowId}`, parameters);
    let most = 0;
    for (;;) {
      const { status } = (await call(url, "GET", `/api/workflow/${workflowId}/runs`)).runs.find(
        (run: any) => run.runId === runId,
      );
      most = Math.max(most, await memoryOf(child));
      if (status === "completed") break;
      expect(status).toBe("running");
      await sleep(100);
    }
    return { detail: await call(url, "GET", `/api/workflow/${workflowId}/runs/${runId}`), most };
  };
  const list = (length: number) => ({ list: Array.from({ length }, (_, at) => at) });
  await finish("map", list(200));
  const before = await settledHeap(child);
  const { detail, most } = await finish("map", list(ITEMS));
  expect(detail.finalOutputs).toEqual({ size: ITEMS });
  expect(Object.keys(detail.nodeResults)).toHaveLength(2 * ITEMS + 1);
  // The events of 10,000 items alone take 30 MB.
  expect((most - before) / MEBIBYTE).toBeLessThan(24);
  const wide = await finish("wide", {});
  expect(wide.detail.finalOutputs).toEqual({ last: 49 });
  expect((wide.most - before) / MEBIBYTE).toBeLessThan(24);
}, 120_000);

it(`a file of ${FILE_BYTES / MEBIBYTE} MiB goes from an answer into the files of a run, and out through a call, in flat memory`, async () => {
  const piece = randomBytes(MEBIBYTE);
  const server = createServer(async ({ url = "" }, response) => {
    const bytes = Number(url.slice(1));
    response.writeHead(200, { "content-type": "application/octet-stream", "content-length": bytes });
    for (let sent = 0; sent < bytes; sent += MEBIBYTE) if (!response.write(piece)) await once(response, "drain");
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { url, child } = await begin(newFolder(), origin);
    const fetchFile = async (bytes: number): Promise<void> => {
      const { runId } = await call(url, "POST", "/api/workflow/webhook?id=fetch", { url: `${origin}/${bytes}` });
      let detail: any;
      do {
        await sleep(100);
        detail = await call(url, "GET", `/api/workflow/fetch/runs/${runId}`);
      } while (detail.status === "running");
      expect([detail.status, detail.files?.[0].size]).toEqual(["completed", bytes]);
      const path = `/api/workflow/fetch/runs/${runId}/files/${detail.files[0].file}`;
      const answer = await fetch(`${url}${path}`, { headers: { "x-workflow-service-token": SERVICE_TOKEN } });
      const digest = createHash("sha256");
      for await (const read of answer.body!) digest.update(read);
      expect(digest.digest("hex")).toBe(detail.files[0].sha256);
    };
    await fetchFile(8 * MEBIBYTE);
    const before = await memoryOf(child, "most");
    await fetchFile(FILE_BYTES);
    expect(((await memoryOf(child, "most")) - before) / MEBIBYTE).toBeLessThan(100);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}, 120_000);

function newFolder(): string {
  const folder = temporaryFolder();
  folders.push(folder);
  mkdirSync(join(folder.path, "workflows"));
  for (const [name, definition] of Object.entries(definitions))
    writeFileSync(join(folder.path, "workflows", name), JSON.stringify(definition));
  return folder.path;
}

async function begin(dataDir: string, effects = "http://127.0.0.1:1") {
  const child = fork(join(import.meta.dirname, "processes/workflow-service.ts"), [dataDir, join(dataDir, "happened"), effects], {
    execArgv: ["--expose-gc"],
  });
  children.push(child);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

async function call(url: string, method: string, path: string, body?: object, more: Record<string, string> = {}): Promise<any> {
  const headers = { "content-type": "application/json", "x-workflow-service-token": SERVICE_TOKEN, ...more };
  const answer = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (answer.status !== 200) throw new Error(`${method} ${path} was answered with ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

async function all(count: number, run: () => Promise<unknown>): Promise<void> {
  let left = count;
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      while (left-- > 0) await run();
    }),
  );
}

async function waiting(url: string, count: number): Promise<void> {
  for (;;) {
    const { runs } = await call(url, "GET", "/api/workflow/gated/runs");
    if (runs.filter(({ status }: any) => status === "waiting_human").length === count) return;
    await sleep(50);
  }
}

/** Resolves when no memory is being freed any more. */
async function settledHeap(child: ChildProcess): Promise<number> {
  let heap = await memoryOf(child);
  for (let quiet = 0; quiet < 3;) {
    await sleep(300);
    const now = await memoryOf(child);
    quiet = now < heap - MEBIBYTE / 8 ? 0 : quiet + 1;
    heap = Math.min(heap, now);
  }
  return heap;
}

/** `most`: the most memory that the process has had, with everything. */
async function memoryOf(child: ChildProcess, asked: "heap" | "most" = "heap"): Promise<number> {
  child.send(asked);
  return ((await once(child, "message")) as [number])[0];
}

async function newGrant(workflowId: string): Promise<string> {
  const key = new Secret("a key of this test");
  const app = await createApp({ name: "grants", adapters: [hmacSigning({ key }), systemClock(), randomIds()] });
  const grants = createGrants({ signing: app.port(ports.signing), clock: app.port(ports.clock), ids: app.port(ports.ids) });
  return (await grants.issue({ workflowId })).executionGrantId;
}

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

/** Number of kills of resumed runs. */
const LATER_LIVES = process.env.PORTICO_LONG ? 6 : 1;

/** Maximum duration of an effect: long enough that a kill often interrupts one. */
const EFFECT_MS = 300;

const folders: ReturnType<typeof temporaryFolder>[] = [];
const children: ChildProcess[] = [];
const servers: Server[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  for (const server of servers) server.close();
  for (const folder of folders) folder.remove();
});

it(
  `${LIVES} kills at random instants under ${RUNS} runs with every kind of node: each is completed, or interrupted at a node that may not be repeated; none of those ran twice, history says what happened, each run that fails is cleaned up and told once, and each interrupted run is resumed to its right end without repeating a finished node, although ${LATER_LIVES === 1 ? "a kill interrupts" : `${LATER_LIVES} kills interrupt`} resumed runs, too`,
  async () => {
    const seen: { name: string; run: string; key: string | undefined }[] = [];
    let onCall: (() => void) | undefined;
    /** Kills the process when the next effect that may not be repeated is under way. */
    const killAtCall = async (child: ChildProcess) => {
      const exited = once(child, "exit");
      onCall = () => void child.kill("SIGKILL");
      await exited;
      onCall = undefined;
    };
    const server = createServer((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        const key = request.headers["idempotency-key"] as string | undefined;
        const name = request.url!.slice(1);
        seen.push({ name, run: (JSON.parse(text) as { run: string }).run, key });
        // The kill comes while this effect is under way, so that it interrupts at least one node that may not be repeated.
        if (name === "call" && onCall) return onCall();
        setTimeout(() => response.end("{}"), Math.random() * EFFECT_MS);
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
    writeFileSync(join(folder.path, "workflows", "broken.json"), JSON.stringify(broken(effects)));
    const { approve, resume } = await grantHolder();
    const accepted = new Set<string>();
    const failing = new Set<string>();
    let service = await begin(folder.path, happened, effects);
    for (let life = 0; life <= LIVES; life++) {
      if (life > 0) service = await begin(folder.path, happened, effects);
      const { child, url } = service;
      const over = new AbortController();
      const sender = (async () => {
        while (!over.signal.aborted && accepted.size < (RUNS * (life + 1)) / (LIVES + 1)) {
          // Repeated after a kill, if no answer came.
          const runId = await trigger(url, accepted.size, over.signal, "main", `order-${accepted.size}`).catch(() => undefined);
          if (runId !== undefined) accepted.add(runId);
          const failed = await trigger(url, accepted.size, over.signal, "broken").catch(() => undefined);
          if (failed !== undefined) failing.add(failed);
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
      if (life === 0) {
        while (accepted.size < RUNS / (LIVES + 1) / 2) await sleep(10);
        await killAtCall(child);
      } else {
        const exited = once(child, "exit");
        await Promise.race([sender, sleep(3000)]);
        setTimeout(() => child.kill("SIGKILL"), 50 + Math.random() * 700);
        await exited;
      }
      over.abort();
      await Promise.all([sender, approving]);
    }

    let { url, child } = service;
    let runs = await runsOf(url);
    while (runs.some(({ status }) => status === "running" || status === "waiting_human")) {
      await approve(url);
      await sleep(50);
      runs = await runsOf(url);
    }
    expect(accepted.size).toBe(RUNS);
    expect(runs.length, "no call that was repeated with its key has started a second run").toBe(RUNS);
    const listed = new Set(runs.map(({ runId }) => runId));
    expect(
      [...accepted].filter((runId) => !listed.has(runId)),
      "nothing accepted is lost",
    ).toEqual([]);
    const happenedLines = () => readFileSync(happened, "utf8").split("\n").filter(Boolean);
    const lines = happenedLines();
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
      expect(detail.status, JSON.stringify(detail.error)).toBe("completed");
      expect([detail.finalOutputs.each, detail.finalOutputs.sub]).toEqual([[200, 200, 200], 200]);
      expect(Object.values(detail.nodeResults).filter(({ status }: any) => status === "running" || status === "waiting")).toEqual(
        [],
      );
    }
    // Its error stays the first one, although its nodes began again after a kill.
    expect(failing.size).toBeGreaterThan(RUNS / 4);
    for (const runId of failing) {
      await expect
        .poll(() => get(url, `/api/workflow/broken/runs/${runId}`), { timeout: 30_000 })
        .toMatchObject({
          ...{ status: "failed", error: { code: "failed", nodeId: "break" } },
          nodeResults: { clean: { status: "completed" }, onFailure: { status: "completed" } },
        });
      for (const name of ["clean", "told"]) {
        const keys = new Set(seen.flatMap((one) => (one.name === name && one.run === runId ? [one.key] : [])));
        expect([...keys], `${name} of ${runId}`).toHaveLength(1);
      }
    }
    // Most of them succeed.
    expect(ended["completed"]).toBeGreaterThan(RUNS / 4);

    /** An interrupted run, and the runs that continue it, each the one before. */
    const chains = runs.filter(({ status }) => status === "interrupted").map(({ runId }) => [runId]);
    expect(chains.length).toBe(ended["interrupted"] ?? 0);
    expect(chains.length).toBeGreaterThan(process.env.PORTICO_LONG ? RUNS / 20 : 0);
    const stateOf = async (runId: string) => (await get(url, `/api/workflow/main/runs/${runId}`)).status as string;
    let kills = LATER_LIVES;
    for (;;) {
      const interrupted: string[][] = [];
      for (const chain of chains) if ((await stateOf(chain.at(-1)!)) === "interrupted") interrupted.push(chain);
      if (interrupted.length === 0 && kills === 0) break;
      for (const chain of interrupted) chain.push(await resume(url, chain.at(-1)!));
      if (kills > 0) {
        // Until the first of them comes to its effect again. A run that was interrupted behind it does not: then a new run does.
        const over = new AbortController();
        const killed = killAtCall(child).finally(() => over.abort());
        while (!over.signal.aborted) {
          await approve(url).catch(() => {});
          await trigger(url, RUNS, over.signal).catch(() => {});
          await sleep(100);
        }
        await killed;
        kills--;
        ({ url, child } = await begin(folder.path, happened, effects));
      }
      while ((await runsOf(url)).some(({ status }) => status === "running" || status === "waiting_human")) {
        await approve(url);
        await sleep(50);
      }
    }
    const after = happenedLines();
    const children = (await get(url, "/api/workflow/child/runs")).runs as { runId: string; parentRunId: string }[];
    const keysOf = (name: string, ids: readonly string[]) =>
      new Set(seen.filter((one) => one.name === name && ids.includes(one.run)).map(({ key }) => key));
    for (const chain of chains) {
      const details = await Promise.all(chain.map((runId) => get(url, `/api/workflow/main/runs/${runId}`)));
      const last = details.at(-1);
      expect([last.status, last.error]).toEqual(["completed", undefined]);
      expect(details.slice(0, -1).every(({ status }) => status === "interrupted")).toBe(true);
      expect([last.finalOutputs.each, last.finalOutputs.sub]).toEqual([[200, 200, 200], 200]);
      for (const [node, kind] of Object.entries(ONCE)) {
        let isKept = false;
        for (const { runId, nodeResults } of details) {
          const effect = `${node} of ${runId} in ${chain.join(", ")}`;
          const count =
            kind === "http"
              ? seen.filter(({ name, run }) => name === "call" && run === runId).length
              : after.filter((line) => line === `${kind} ${runId}`).length;
          const result = nodeResults[node];
          if (isKept) expect(count, effect).toBe(0);
          else if (result?.status === "completed") expect(count, effect).toBe(1);
          // An effect that no history has is the effect of the interrupted node, which is repeated. A turn may begin before its run has stored
          // that it was started: starting it again has no effect, but a run that is interrupted elsewhere does not come to it again.
          else expect(count, effect).toBeLessThanOrEqual(kind === "agent" || result?.startedAt !== undefined ? 1 : 0);
          isKept ||= result?.status === "completed";
        }
      }
      // Nodes with a key may be repeated. All their calls carry the keys of the first run.
      expect(keysOf("each", chain).size, `keys of ${chain[0]}`).toBe(3);
      const theirs = children.filter(({ parentRunId }) => chain.includes(parentRunId)).map(({ runId }) => runId);
      expect(keysOf("child", theirs).size, `keys of the sub-workflow of ${chain[0]}`).toBe(1);
    }
    child.kill("SIGKILL");
  },
  60_000 + LIVES * 20_000 + RUNS * 500,
);

/** A workflow that always fails. Its effects after the failure carry one key for each run. */
function broken(effects: string): object {
  const call = (name: string) => ({
    type: "http",
    with: { method: "POST", url: `${effects}/${name}`, body: { run: "${{ run.id }}" }, key: "node" },
  });
  return {
    nodes: {
      work: call("work"),
      break: { type: "fail", needs: ["work"], with: { message: "It broke" } },
      beside: { type: "wait", with: { for: "1h" } },
      clean: { ...call("clean"), if: "always", needs: ["break", "beside"] },
    },
    onFailure: call("told"),
  };
}

async function begin(dataDir: string, happened: string, effects: string) {
  const child = fork(join(import.meta.dirname, "processes/workflow-service.ts"), [dataDir, happened, effects, String(EFFECT_MS)]);
  children.push(child);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

const headers = { "content-type": "application/json", "x-workflow-service-token": SERVICE_TOKEN };

async function trigger(
  url: string,
  n: number,
  signal: AbortSignal,
  workflow = "main",
  key?: string,
): Promise<string | undefined> {
  const body = JSON.stringify({ n });
  const keyed = key === undefined ? headers : { ...headers, "idempotency-key": key };
  const answer = await fetch(`${url}/api/workflow/webhook?id=${workflow}`, { method: "POST", headers: keyed, body, signal });
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

/** Approves every waiting gate, and resumes runs. */
async function grantHolder() {
  const key = new Secret("a key of this test");
  const app = await createApp({ name: "grants", adapters: [hmacSigning({ key }), systemClock(), randomIds()] });
  const grants = createGrants({ signing: app.port(ports.signing), clock: app.port(ports.clock), ids: app.port(ports.ids) });
  const granted = async () => {
    const { executionGrantId } = await grants.issue({ workflowId: "main" });
    return { ...headers, "x-execution-grant": executionGrantId };
  };
  const resume = async (url: string, runId: string): Promise<string> => {
    const body = JSON.stringify({ idempotencyKey: runId });
    const path = `${url}/api/workflow/main/runs/${runId}/resume`;
    const answer = await fetch(path, { method: "POST", headers: await granted(), body });
    const { runId: newer, resumes } = (await answer.json()) as { runId: string; resumes: string };
    expect([answer.status, resumes]).toEqual([200, runId]);
    return newer;
  };
  const approve = async (url: string): Promise<void> => {
    const waiting = (await runsOf(url)).filter(({ status }) => status === "waiting_human");
    const own = await granted();
    for (const { runId } of waiting) {
      const body = JSON.stringify({ decision: "approve" });
      await (await fetch(`${url}/api/workflow/main/runs/${runId}/gate`, { method: "POST", headers: own, body })).arrayBuffer();
    }
  };
  return { approve, resume };
}

import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectAgent } from "@portico/client";
import { afterAll, expect, it } from "vitest";
import { runPortico, startPortico, temporaryFolder, type PorticoProcess } from "../harness/portico-process.ts";

const KILLS = process.env.PORTICO_LONG ? 40 : 2;
const COUNT = 100;
const QUOTA = 256;
const DAYS = 10;
const TOKEN = "owner-token-0123456789";
const config = {
  agent: { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }], keepRuns: "5d", keepAttachments: "5d" },
};
const folder = temporaryFolder();
afterAll(() => folder.remove());

/** Loaded before a service: its clock is ahead by this many days, and actions that follow a minute after its start happen at once. */
const after = (days: number) => `
  const { now } = Date, { setTimeout } = globalThis;
  Date.now = () => now() + ${days} * 86_400_000;
  globalThis.setTimeout = (run, ms, ...given) => setTimeout(run, ms === 60_000 ? 1 : ms, ...given);
`;
const start = (days: number) =>
  startPortico({ cwd: folder.path, config, hasOwnProcess: true, ...(days > 0 && { before: after(days) }) });

it(
  `${KILLS} kills at any instant of a sweep: each run and each file is whole or gone, and the next process completes it`,
  async () => {
    mkdirSync(join(folder.path, "agents", "helper"), { recursive: true });
    writeFileSync(join(folder.path, "agents", "helper", "agent.json"), JSON.stringify({ name: "Helper" }));
    {
      await using service = await start(0);
      await fill(service);
      await service.stop();
    }
    for (let kill = 0; kill < KILLS; kill++) {
      await using service = await start(DAYS);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 150));
      service.signal("SIGKILL");
      await service.exited;
      await expectWhole();
    }
    const service = await start(DAYS);
    await using client = connectAgent({ baseURL: service.url("agent"), token: TOKEN });
    await expect.poll(async () => (await client.calls.runs({ query: {} })).runs, { timeout: 60_000 }).toEqual([]);
    await expect.poll(() => attachments(), { timeout: 60_000 }).toEqual([]);
    await expect.poll(() => blobsIn(service.dataDir), { timeout: 60_000 }).toEqual([]);
    expect((await client.calls.conversations({ query: {} })).conversations).toEqual([]);
    expect(service.stderr()).not.toMatch(/"level":"error"/);
    await service[Symbol.asyncDispose]();
    // The whole quota is free again.
    await using last = await start(0);
    for (let at = 0; at < QUOTA; at++) expect((await upload(last)).status).toBe(201);
    expect((await upload(last)).status).toBe(429);
  },
  KILLS * 60_000 + 120_000,
);

async function upload({ url }: PorticoProcess): Promise<Response> {
  const form = new FormData();
  form.append("file", new Blob(["Tea at five"]), "note.txt");
  return fetch(`${url("agent")}/api/attachments`, { method: "POST", headers: { "x-agent-service-token": TOKEN }, body: form });
}

async function fill(service: PorticoProcess): Promise<void> {
  await using client = connectAgent({ baseURL: service.url("agent"), token: TOKEN });
  for (let at = 0; at < COUNT; at++) expect((await upload(service)).status).toBe(201);
  const ends = Array.from({ length: COUNT }, () => client.submit({ agentId: "helper", prompt: "Hello" }).ended);
  for (const { status } of await Promise.all(ends)) expect(status).toBe("completed");
}

/** Read by a service whose clock is not ahead: it removes nothing. */
async function expectWhole(): Promise<void> {
  await using service = await start(0);
  await using client = connectAgent({ baseURL: service.url("agent"), token: TOKEN });
  const { runs } = await client.calls.runs({ query: { limit: "1000" } });
  for (const { run_id, conversation_id } of runs) {
    expect((await client.calls.receipts({ params: { id: run_id }, query: {} })).receipts).toHaveLength(1);
    expect((await client.calls.messages({ params: { id: conversation_id! }, query: {} })).messages).toHaveLength(2);
  }
  for (const { attachmentId } of await attachments()) {
    const headers = { "x-agent-service-token": TOKEN };
    const answer = await fetch(`${service.url("agent")}/api/attachments/${attachmentId}`, { headers });
    expect([answer.status, await answer.text()]).toEqual([200, "Tea at five"]);
  }
  await service.stop();
}

async function attachments(): Promise<readonly { readonly attachmentId: string }[]> {
  return JSON.parse((await runPortico(["attachments", "list", "--json"], { cwd: folder.path })).stdout);
}

function blobsIn(dataDir: string): readonly string[] {
  const files = readdirSync(join(dataDir, "files", "attachments"), { recursive: true, withFileTypes: true });
  return files.filter((entry) => entry.isFile()).map(({ name }) => name);
}

import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connectAgent } from "@portico/client";
import { afterAll, expect, it } from "vitest";
import { openCommand, type PorticoProcess, runPortico, startPortico, temporaryFolder } from "../harness/portico-process.ts";

const KILLS = process.env.PORTICO_LONG ? 40 : 2;
const TURNS = 30;
const WORDS = "Secret words of ada";
const OWNERS_WORDS = "Secret words of the owner";
const TOKENS = { owner: "owner-token-0123456789", ada: "ada-token-0123456789" };
const config = {
  agent: {
    tokens: [
      { token: TOKENS.owner, userId: "owner", role: "owner" },
      { token: TOKENS.ada, userId: "ada", role: "member" },
    ],
  },
};
const folder = temporaryFolder();
let service: PorticoProcess | undefined;
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  folder.remove();
});

it(
  `${KILLS} kills at any instant while a user is erased beside a running service: the next call continues, and nothing is left`,
  async () => {
    mkdirSync(join(folder.path, "agents", "helper"), { recursive: true });
    writeFileSync(join(folder.path, "agents", "helper", "agent.json"), JSON.stringify({ name: "Helper" }));
    service = await startPortico({ cwd: folder.path, config, hasOwnProcess: true });
    for (let round = 0; round < KILLS; round++) {
      await fill(service);
      const erasing = openCommand(["user", "erase", "ada", "--yes"], { cwd: folder.path });
      const timer = setTimeout(() => erasing.signal("SIGKILL"), 300 + Math.random() * 900);
      await erasing.ended.catch(() => {});
      clearTimeout(timer);
      await expectWhole(service);
    }
    const { code, stderr } = await runPortico(["user", "erase", "ada", "--yes"], { cwd: folder.path });
    expect([code, stderr]).toEqual([0, ""]);
    expect(filesWith(service.dataDir, WORDS)).toEqual([]);
    // Files without a record are removed, too: such a file counts as one without an owner, which every user may read.
    expect(blobsIn(service.dataDir)).toEqual([]);
  },
  KILLS * 60_000,
);

it(
  `${KILLS} kills of the command or the service while a user's waiting events are stopped and erased: the next call continues, and no event begins again`,
  async () => {
    const silent = createServer(() => {});
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`;
    const providers = [{ id: "main", protocol: "chat-completions", baseUrl, models: ["echo"] }];
    const start = () => startPortico({ cwd: folder.path, config: { ...config, providers }, hasOwnProcess: true });
    const erase = ["user", "erase", "owner", "--yes", "--cancel"];
    await service?.stop();
    service = await start();
    try {
      for (let round = 0; round < KILLS; round++) {
        await queueEvents(service);
        const erasing = openCommand(erase, { cwd: folder.path });
        const killsService = round % 2 === 0;
        const { signal } = killsService ? service : erasing;
        const timer = setTimeout(() => signal("SIGKILL"), 300 + Math.random() * 1_200);
        await erasing.ended.catch(() => {});
        clearTimeout(timer);
        if (!killsService) continue;
        // The kill may have come too late.
        service.signal("SIGKILL");
        await service.exited;
        service = await start();
      }
      const { code, stderr } = await runPortico(erase, { cwd: folder.path });
      expect([code, stderr]).toEqual([0, ""]);
      expect(filesWith(service.dataDir, OWNERS_WORDS)).toEqual([]);
      await service.stop();
      service = await start();
      await using client = connectAgent({ baseURL: service.url("agent"), token: TOKENS.owner });
      const { runs } = await client.calls.runs({ query: {} });
      expect(runs.filter(({ user_id }) => user_id === "owner")).toEqual([]);
      expect((await runPortico(erase, { cwd: folder.path })).stdout).toBe("Erased: nothing.\n");
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  },
  (KILLS + 1) * 90_000,
);

/** More events than an agent works on at once. */
async function queueEvents({ url }: PorticoProcess): Promise<void> {
  const json = { "content-type": "application/json" };
  const owner = { ...json, "x-agent-service-token": TOKENS.owner };
  const webhooks = `${url("agent")}/api/agents/helper/webhooks`;
  const body = JSON.stringify({ promptTemplate: "{{words}}", toolIds: [], maxTurns: 5 });
  expect((await fetch(`${webhooks}/events/pushed`, { method: "PUT", headers: owner, body })).status).toBe(200);
  const rotated = await fetch(`${webhooks}/secret/rotate`, { method: "POST", headers: owner });
  const { secret } = (await rotated.json()) as { secret: string };
  for (let at = 0; at < TURNS; at++) {
    const answer = await fetch(`${url("agent")}/api/webhook/helper`, {
      method: "POST",
      headers: { ...json, authorization: `Bearer ${secret}` },
      body: JSON.stringify({ event: "pushed", payload: { words: OWNERS_WORDS } }),
    });
    expect(answer.status).toBe(200);
  }
}

async function fill({ url }: PorticoProcess): Promise<void> {
  await using client = connectAgent({ baseURL: url("agent"), token: TOKENS.ada });
  const form = new FormData();
  form.append("file", new Blob([WORDS]), `${WORDS}.txt`);
  const headers = { "x-agent-service-token": TOKENS.ada };
  for (let at = 0; at < TURNS; at++) {
    const { status } = await fetch(`${url("agent")}/api/attachments`, { method: "POST", headers, body: form });
    // Several kills may have come before anything was erased.
    if (status === 429) break;
    expect(status).toBe(201);
  }
  const ends = Array.from({ length: TURNS }, () => client.submit({ agentId: "helper", prompt: WORDS }).ended);
  for (const { status } of await Promise.all(ends)) expect(status).toBe("completed");
}

/** Each run has its receipt and its conversation, and each attachment its bytes. */
async function expectWhole({ url }: PorticoProcess): Promise<void> {
  await using client = connectAgent({ baseURL: url("agent"), token: TOKENS.ada });
  const { runs } = await client.calls.runs({ query: { limit: "1000" } });
  for (const { run_id, conversation_id } of runs) {
    expect((await client.calls.receipts({ params: { id: run_id }, query: {} })).receipts).toHaveLength(1);
    const { messages } = await client.calls.messages({ params: { id: conversation_id! }, query: {} });
    expect(messages).toHaveLength(2);
  }
  const { stdout } = await runPortico(["attachments", "list", "--user", "ada", "--json"], { cwd: folder.path });
  const headers = { "x-agent-service-token": TOKENS.ada };
  for (const { attachmentId } of JSON.parse(stdout)) {
    const answer = await fetch(`${url("agent")}/api/attachments/${attachmentId}`, { headers });
    expect([answer.status, await answer.text()]).toEqual([200, WORDS]);
  }
}

function filesWith(dir: string, text: string): readonly string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text));
}

function blobsIn(dataDir: string): readonly string[] {
  const files = readdirSync(join(dataDir, "files", "attachments"), { recursive: true, withFileTypes: true });
  return files.filter((entry) => entry.isFile()).map(({ name }) => name);
}

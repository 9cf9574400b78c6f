import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectAgent } from "@portico/client";
import { afterAll, expect, it } from "vitest";
import { openCommand, type PorticoProcess, runPortico, startPortico, temporaryFolder } from "../harness/portico-process.ts";

const KILLS = process.env.PORTICO_LONG ? 40 : 4;
const TURNS = 30;
const WORDS = "Secret words of ada";
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

async function fill({ url }: PorticoProcess): Promise<void> {
  await using client = connectAgent({ baseURL: url("agent"), token: TOKENS.ada });
  const form = new FormData();
  form.append("file", new Blob([WORDS]), `${WORDS}.txt`);
  const headers = { "x-agent-service-token": TOKENS.ada };
  for (let at = 0; at < TURNS; at++) {
    expect((await fetch(`${url("agent")}/api/attachments`, { method: "POST", headers, body: form })).status).toBe(201);
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

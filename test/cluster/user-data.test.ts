import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connectAgent } from "@portico/client";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { CLUSTER_OWNER, type ClusterPlace, clusterPlace, startCluster } from "../harness/cluster.ts";
import { runCommand } from "../harness/portico-process.ts";

const place = await clusterPlace();
if (!place) console.warn("Tests of clusters are skipped: no PostgreSQL or no Redis server answers");

const ADA = "ada-token-0123456789";
const WORDS = "Secret words of ada";

describe.skipIf(!place)("the data of a user in a cluster", () => {
  it("is exported, and erased after the user's work was stopped in whichever process, and is then in no row and no file", async () => {
    const silent = createServer(() => {});
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    onTestFinished(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`;
    const tokens = [
      { token: CLUSTER_OWNER, userId: "owner", role: "owner" },
      { token: ADA, userId: "ada", role: "member" },
    ];
    const providers = [{ id: "main", protocol: "chat-completions", baseUrl, models: ["echo"] }];
    const env = { PORTICO_AGENT_TOKENS: JSON.stringify(tokens), PORTICO_PROVIDERS: JSON.stringify(providers) };
    await using cluster = await startCluster(place!, { count: 2, env });
    const documents = join(place!.folder, "documents");
    mkdirSync(join(documents, "agents", "helper"), { recursive: true });
    writeFileSync(join(documents, "agents", "helper", "agent.json"), JSON.stringify({ name: "Helper" }));
    expect((await place!.run("documents", "push", documents)).code).toBe(0);
    const agent = cluster.url("agent");
    const run = (...args: string[]) =>
      runCommand(["user", ...args], { cwd: place!.folder, env: { ...place!.env, ...env, PORTICO_AGENT_PUBLIC_URL: agent } });

    const form = new FormData();
    form.append("file", new Blob([WORDS]), `${WORDS}.txt`);
    const headers = { "x-agent-service-token": ADA };
    const attachment = await (await fetch(`${agent}/api/attachments`, { method: "POST", headers, body: form })).json();
    await using client = connectAgent({ baseURL: agent, token: ADA });
    await expect.poll(async () => (await client.calls.agents()).agents.length, { timeout: 30_000 }).toBe(1);
    const { fileReference } = attachment;
    client.submit({ agentId: "helper", prompt: WORDS, fileReferences: [fileReference] }).ended.catch(() => {});
    await vi.waitFor(async () => {
      expect((await client.calls.runs({ query: {} })).runs).toMatchObject([{ status: "running" }]);
    }, 30_000);

    const dir = join(place!.folder, "ada");
    expect((await run("export", "ada", dir)).code).toBe(0);
    expect(readFileSync(join(dir, "attachments", attachment.attachmentId), "utf8")).toBe(WORDS);
    expect(readFileSync(join(dir, "runs.jsonl"), "utf8")).toContain(WORDS);
    const refused = await run("erase", "ada", "--yes");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("1 turn or run that waits or executes")]);
    const erased = await run("erase", "ada", "--yes", "--cancel");
    expect([erased.code, erased.stderr]).toEqual([0, ""]);
    expect(erased.stdout).toBe("Erased: 1 runs, 1 conversations, 1 submissions, 1 attachments.\n");
    // Entries of removed streams are deleted in the background.
    await expect.poll(() => storedText(place!), { timeout: 30_000 }).not.toContain(WORDS);
    expect(filesWith(join(place!.folder, "blobs"), WORDS)).toEqual([]);
    expect((await fetch(`${agent}/api/attachments/${attachment.attachmentId}`, { headers })).status).toBe(404);
  }, 120_000);
});

/** All rows of all tables, as text. */
async function storedText({ database }: ClusterPlace): Promise<string> {
  const tables = await database.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'portico'");
  const rows = await Promise.all(tables.map(({ name }) => database.query(`SELECT t::text AS row FROM portico."${name}" t`)));
  return rows
    .flat()
    .map(({ row }) => row as string)
    .join("\n");
}

function filesWith(dir: string, text: string): readonly string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text));
}

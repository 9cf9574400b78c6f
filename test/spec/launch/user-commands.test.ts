import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { connectAgent } from "@portico/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { png } from "../../harness/files-app.ts";
import { type PorticoProcess, runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { waitingCall } from "../../harness/waiting-call.ts";

// A test runs several commands, one after another.
vi.setConfig({ testTimeout: 120_000 });

const TOKENS = { owner: "owner-token-0123456789", ada: "ada-token-0123456789", bob: "bob-token-0123456789" };
const agent = {
  tokens: [
    { token: TOKENS.owner, userId: "owner", role: "owner" },
    { token: TOKENS.ada, userId: "ada", role: "member" },
    { token: TOKENS.bob, userId: "bob", role: "member" },
  ],
};
type Holder = keyof typeof TOKENS;

let folder: ReturnType<typeof temporaryFolder>;
let service: PorticoProcess;
let silent: Server | undefined;
beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder.path, "agents", "helper"), { recursive: true });
  writeFileSync(join(folder.path, "agents", "helper", "agent.json"), JSON.stringify({ name: "Helper", memory: true }));
});
afterEach(async () => {
  await service[Symbol.asyncDispose]();
  silent?.closeAllConnections();
  silent?.close();
  silent = undefined;
  folder.remove();
});

const start = async (config: object = {}) => {
  service = await startPortico({ cwd: folder.path, config: { agent, shutdownGraceMs: 100, ...config } });
};
/** A service whose provider never answers. */
const startSilent = async () => {
  silent = createServer(() => {});
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`;
  await start({ providers: [{ id: "main", protocol: "chat-completions", baseUrl, models: ["echo"] }] });
};
/** The words of a user, which stand in everything that the user sends. */
const wordsOf = (holder: Holder) => `Secret words of ${holder}`;
const clientOf = (holder: Holder) => connectAgent({ baseURL: service.url("agent"), token: TOKENS[holder] });
const upload = async (holder: Holder, path: string, bytes: Uint8Array | string, name: string, type: string) => {
  const form = new FormData();
  form.append("file", new Blob([bytes as Uint8Array<ArrayBuffer>], { type }), name);
  const headers = { "x-agent-service-token": TOKENS[holder] };
  const answer = await fetch(service.url("agent") + path, { method: "POST", headers, body: form });
  expect(answer.ok).toBe(true);
  return answer.json();
};
/** A user with a conversation of two turns, a remembered document, an attachment and media. */
const fill = async (holder: Holder) => {
  const words = wordsOf(holder);
  const attachment = await upload(holder, "/api/attachments", `${words} in a file`, `${words}.txt`, "text/plain");
  const bytes = Buffer.concat([png(), Buffer.from(words)]);
  const media = await upload(holder, "/api/media/upload", bytes, `${words}.png`, "image/png");
  await using client = clientOf(holder);
  const first = await client.submit({ agentId: "helper", prompt: words, fileReferences: [attachment.fileReference] }).ended;
  expect(first.status).toBe("completed");
  const { conversations } = await client.calls.conversations({ query: {} });
  const [{ conversationId } = { conversationId: "" }] = conversations;
  const again = client.submit({ agentId: "helper", prompt: `${words} again`, conversationId });
  expect((await again.ended).status).toBe("completed");
  const remembered = { params: { id: "helper", name: words }, body: { text: words }, headers: { "if-none-match": "*" } };
  await client.calls.writeMemory(remembered);
  const { runs } = await client.calls.runs({ query: {} });
  return { attachment, media, bytes, conversationId, runId: runs[0]!.run_id };
};
const run = (...args: string[]) => runCommand(["user", ...args], { cwd: folder.path });
const get = async (holder: Holder, path: string) => {
  const answer = await fetch(service.url("agent") + path, { headers: { "x-agent-service-token": TOKENS[holder] } });
  await answer.arrayBuffer();
  return answer.status;
};
/** All files below a folder that have this text. */
const filesWith = (dir: string, text: string): readonly string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text) || file.includes(text));
const lines = (dir: string, name: string) =>
  readFileSync(join(dir, `${name}.jsonl`), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("portico user export", () => {
  it("writes everything of a user, and nothing of other users, into a folder that only its owner can read", async () => {
    await start();
    const { attachment, media, bytes, conversationId, runId } = await fill("ada");
    await fill("bob");
    const dir = join(folder.path, "ada");
    const { code, stdout, stderr } = await run("export", "ada", dir, "--json");
    expect([code, stderr]).toEqual([0, ""]);
    const counts = {
      runs: 1,
      receipts: 2,
      conversations: 1,
      messages: 4,
      submissions: 2,
      "agent-memories": 1,
      attachments: 1,
      media: 1,
    };
    expect(JSON.parse(stdout)).toEqual({ userId: "ada", counts, missing: [] });
    expect(JSON.parse(readFileSync(join(dir, "export.json"), "utf8"))).toMatchObject({ format: 1, userId: "ada", counts });
    expect(lines(dir, "runs")).toMatchObject([{ run_id: runId, user_id: "ada" }]);
    expect(lines(dir, "receipts")).toMatchObject([{ input: wordsOf("ada") }, { input: `${wordsOf("ada")} again` }]);
    expect(lines(dir, "messages").map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    expect(lines(dir, "conversations")).toMatchObject([{ conversationId }]);
    expect(lines(dir, "submissions")).toHaveLength(2);
    expect(lines(dir, "agent-memories")).toMatchObject([{ agentId: "helper", name: wordsOf("ada"), text: wordsOf("ada") }]);
    expect(lines(dir, "attachments")).toMatchObject([{ attachmentId: attachment.attachmentId, name: attachment.name }]);
    expect(readFileSync(join(dir, "attachments", attachment.attachmentId), "utf8")).toBe(`${wordsOf("ada")} in a file`);
    expect(readFileSync(join(dir, "media", media.mediaId))).toEqual(bytes);
    expect(filesWith(dir, "bob")).toEqual([]);
    for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
      const mode = statSync(join(entry.parentPath, entry.name)).mode & 0o777;
      expect([entry.name, mode]).toEqual([entry.name, entry.isDirectory() ? 0o700 : 0o600]);
    }
    const again = await run("export", "ada", dir);
    expect([again.code, again.stderr]).toEqual([73, `The folder ${dir} exists already: give a new folder\n`]);
    // Without a service, and of a user of whom nothing is kept.
    await service.stop();
    const none = await run("export", "nobody", join(folder.path, "none"));
    expect(none).toMatchObject({ code: 1, stdout: "", stderr: 'Nothing is kept of a user with the id "nobody"\n' });
    expect(readdirSync(folder.path)).not.toContain("none");
  });
});

describe("a conversation with branches", () => {
  it("is exported with them, and erased with them", async () => {
    await start();
    const { conversationId } = await fill("ada");
    {
      await using client = clientOf("ada");
      const { messages } = await client.calls.messages({ params: { id: conversationId }, query: {} });
      const again = client.submit({ agentId: "helper", prompt: "", conversationId, regenerates: messages.at(-1)!.id });
      expect((await again.ended).status).toBe("completed");
    }
    const dir = join(folder.path, "with-branches");
    expect((await run("export", "ada", dir, "--json")).code).toBe(0);
    const jumps = [{ at: 5, after: 2, branch: 2 }];
    expect(lines(dir, "conversation-branches")).toEqual([{ conversationId, jumps }]);
    expect(lines(dir, "messages")).toHaveLength(6);
    expect(filesWith(service.dataDir, conversationId).length).toBeGreaterThan(0);
    expect((await run("erase", "ada", "--yes")).code).toBe(0);
    expect(filesWith(service.dataDir, conversationId)).toEqual([]);
  });
});

describe("portico user erase", () => {
  it("leaves no trace of a user in the data directory, beside a running service, and all of other users", async () => {
    await start();
    const { attachment, conversationId, runId } = await fill("ada");
    const bob = await fill("bob");
    expect(filesWith(service.dataDir, wordsOf("ada")).length).toBeGreaterThan(0);
    const unsure = await run("erase", "ada");
    expect([unsure.code, unsure.stderr]).toEqual([64, "Use --yes to confirm without a terminal\n"]);
    const { code, stdout, stderr } = await run("erase", "ada", "--yes", "--json");
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toEqual({
      ...{ userId: "ada", runs: 1, conversations: 1, submissions: 2, deliveries: 0, memories: 1 },
      ...{ workflowRuns: 0, attachments: 1, media: 1, accounts: 0 },
    });
    expect(filesWith(service.dataDir, wordsOf("ada"))).toEqual([]);
    for (const path of [
      `/api/runs/${runId}`,
      `/api/runs/${runId}/receipt`,
      `/api/conversations/${conversationId}/messages`,
      `/api/attachments/${attachment.attachmentId}`,
    ])
      expect([path, await get("ada", path)]).toEqual([path, 404]);
    for (const path of [
      `/api/runs/${bob.runId}/receipt`,
      `/api/conversations/${bob.conversationId}/messages`,
      `/api/attachments/${bob.attachment.attachmentId}`,
    ])
      expect([path, await get("bob", path)]).toEqual([path, 200]);
    expect((await run("erase", "ada", "--yes")).stdout).toBe("Erased: nothing.\n");
    // The service goes on, also for this user.
    await fill("ada");
    await service.stop();
    expect((await run("erase", "ada", "--yes")).stdout).toBe(
      "Erased: 1 runs, 1 conversations, 2 submissions, 1 memories, 1 attachments, 1 media.\n",
    );
    expect(filesWith(service.dataDir, wordsOf("ada"))).toEqual([]);
  });

  it("refuses while a turn of the user executes or waits, and stops them with --cancel", async () => {
    await startSilent();
    await using client = clientOf("ada");
    const query = client.submit({ agentId: "helper", prompt: wordsOf("ada") });
    query.ended.catch(() => {});
    const { runs } = await vi.waitFor(async () => {
      const listed = await client.calls.runs({ query: {} });
      expect(listed.runs).toMatchObject([{ status: "running" }]);
      return listed;
    }, 30_000);
    client.submit({ agentId: "helper", prompt: "It waits", conversationId: runs[0]!.conversation_id! }).ended.catch(() => {});
    await expect.poll(async () => (await run("erase", "ada", "--yes")).stderr).toMatch(/^The user has 2 turns or runs that wait/);
    expect(await get("ada", `/api/runs/${runs[0]!.run_id}`)).toBe(200);

    const { code, stdout, stderr } = await run("erase", "ada", "--yes", "--cancel", "--json");
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({ runs: 1, conversations: 1, submissions: 2 });
    expect(filesWith(service.dataDir, wordsOf("ada"))).toEqual([]);
    expect(await get("ada", `/api/runs/${runs[0]!.run_id}`)).toBe(404);
  });

  it("finds calls that wait for a person, decisions and consents: exports them, stops the turn with --cancel, and removes them", async () => {
    mkdirSync(join(folder.path, "agents", "asker"));
    const definition = { name: "Asker", tools: ["SendUserMessage"], toolPolicy: { tools: { SendUserMessage: "ask" } } };
    writeFileSync(join(folder.path, "agents", "asker", "agent.json"), JSON.stringify(definition));
    await start();
    const ask = async (holder: Holder) => {
      const prompt = `Use SendUserMessage for the ${wordsOf(holder)}`;
      const { runId, callId, socket } = await waitingCall(service.url("agent"), TOKENS[holder], "asker", prompt);
      const ended = once(socket as never, "query:complete").finally(() => socket.disconnect());
      return { runId, callId, ended };
    };
    const decide = async (holder: Holder, { runId, callId }: { runId: string; callId: string }, body: object) =>
      fetch(`${service.url("agent")}/api/runs/${runId}/approvals/${callId}`, {
        method: "POST",
        headers: { "x-agent-service-token": TOKENS[holder], "content-type": "application/json" },
        body: JSON.stringify({ decision: "approve", comment: `A comment with the ${wordsOf(holder)}`, ...body }),
      });
    const waiting = await ask("ada");
    waiting.ended.catch(() => {});
    const decided = await ask("ada");
    expect((await decide("ada", decided, { standing: true })).status).toBe(200);
    await decided.ended;
    const other = await ask("bob");
    expect((await decide("bob", other, { standing: true })).status).toBe(200);
    await other.ended;

    const dir = join(folder.path, "exported");
    const exported = JSON.parse((await run("export", "ada", dir, "--json")).stdout);
    expect(exported.counts).toMatchObject({ approvals: 2, "tool-consents": 1 });
    expect(lines(dir, "approvals")).toContainEqual(
      expect.objectContaining({
        runId: decided.runId,
        decided: expect.objectContaining({ decision: "approve", comment: `A comment with the ${wordsOf("ada")}` }),
      }),
    );
    expect(lines(dir, "approvals")).toContainEqual(expect.objectContaining({ runId: waiting.runId, isOpen: true }));
    expect(lines(dir, "tool-consents")).toMatchObject([{ userId: "ada", agentId: "asker", toolId: "SendUserMessage" }]);
    expect(filesWith(dir, "bob")).toEqual([]);

    expect((await run("erase", "ada", "--yes")).stderr).toMatch(/^The user has 1 turn or run that waits or executes/);
    const { code, stderr } = await run("erase", "ada", "--yes", "--cancel");
    expect([code, stderr]).toEqual([0, ""]);
    expect(filesWith(service.dataDir, wordsOf("ada"))).toEqual([]);
    const open = async (path: string) => {
      const answer = await fetch(service.url("agent") + path, { headers: { "x-agent-service-token": TOKENS.owner } });
      return (await answer.json()) as any;
    };
    expect((await open("/api/approvals")).approvals).toEqual([]);
    expect((await open("/api/tool-consents")).consents).toMatchObject([{ userId: "bob" }]);
    expect(filesWith(service.dataDir, wordsOf("bob")).length).toBeGreaterThan(0);
  });

  it("finds webhook events that wait in the queue, and stops them with --cancel, so that none begins after a restart", async () => {
    await startSilent();
    const webhooks = `${service.url("agent")}/api/agents/helper/webhooks`;
    const json = { "content-type": "application/json" };
    const saved = await fetch(`${webhooks}/events/pushed`, {
      method: "PUT",
      headers: { ...json, "x-agent-service-token": TOKENS.owner },
      body: JSON.stringify({ promptTemplate: "{{words}}", toolIds: [], maxTurns: 5 }),
    });
    const { secret } = await saved.json();
    const events = 10; // more than an agent works on at once
    for (let at = 0; at < events; at++) {
      const answer = await fetch(`${service.url("agent")}/api/webhook/helper`, {
        method: "POST",
        headers: { ...json, authorization: `Bearer ${secret}` },
        body: JSON.stringify({ event: "pushed", payload: { words: wordsOf("owner") } }),
      });
      expect(answer.status).toBe(200);
    }
    const exported = await run("export", "owner", join(folder.path, "exported"), "--json");
    expect(JSON.parse(exported.stdout).counts).toMatchObject({ "waiting-events": events });
    expect(lines(join(folder.path, "exported"), "waiting-events")[0]).toMatchObject({
      ...{ agentId: "helper", input: wordsOf("owner"), origin: "webhook", displayName: "pushed" },
    });
    const refused = await run("erase", "owner", "--yes");
    expect([refused.code, refused.stderr]).toEqual([
      1,
      `The user has ${events} turns or runs that wait or execute: wait for the end, or use --cancel\n`,
    ]);
    const { code, stdout, stderr } = await run("erase", "owner", "--yes", "--cancel", "--json");
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({ runs: events });
    expect(filesWith(service.dataDir, wordsOf("owner"))).toEqual([]);
    await service.stop();
    await start();
    await fill("ada");
    await using client = clientOf("owner");
    const { runs } = await client.calls.runs({ query: {} });
    expect(runs.map(({ user_id }) => user_id)).toEqual(["ada"]);
  });

  it("is recorded in the audit, as are an export and a call that stops turns", async () => {
    await start();
    await fill("ada");
    expect((await run("export", "ada", join(folder.path, "ada"))).code).toBe(0);
    expect((await run("erase", "ada", "--yes")).code).toBe(0);
    const headers = { "x-agent-service-token": TOKENS.owner };
    await fetch(`${service.url("agent")}/api/users/ada/stop-turns`, { method: "POST", headers });
    const { items } = await (await fetch(`${service.url("agent")}/api/audit`, { headers })).json();
    const found = items.filter(({ action }: { action: string }) => action.startsWith("user."));
    const by = (role: string) => ({ role, userId: role === "command" ? userInfo().username : "owner" });
    expect(found.toReversed().map(({ action, object, outcome, who }: any) => [action, object, outcome, who])).toEqual(
      [
        ["user.export", by("command")],
        ["user.erase", by("command")],
        ["user.stop-turns", by("owner")],
      ].flatMap(([action, who]) =>
        ["begun", "done"].map((outcome) => [action, "ada", outcome, expect.objectContaining(who as object)]),
      ),
    );
  });

  it("asks for the user's id on a terminal, and removes nothing for another answer or none", async () => {
    await start();
    const { runId } = await fill("ada");
    const answer = (input: string) =>
      runPortico(["user", "erase", "ada"], { cwd: folder.path, before: "process.stdin.isTTY = true;", input });
    for (const input of ["bob\n", "\n", ""]) {
      const { code, stdout, stderr } = await answer(input);
      expect([input, code, stdout]).toEqual([input, 1, ""]);
      expect(stderr).toMatch(/^Everything of the user ada will be removed\. .*Nothing was removed\n$/s);
    }
    expect(await get("ada", `/api/runs/${runId}`)).toBe(200);
    expect((await answer("ada\n")).code).toBe(0);
    expect(await get("ada", `/api/runs/${runId}`)).toBe(404);
  });

  it("only the owner may stop the turns of a user", async () => {
    await start();
    const stop = async (holder: Holder) => {
      const headers = { "x-agent-service-token": TOKENS[holder] };
      const answer = await fetch(`${service.url("agent")}/api/users/ada/stop-turns`, { method: "POST", headers });
      return [answer.status, await answer.json()];
    };
    expect(await stop("owner")).toEqual([200, { userId: "ada", stopped: 0 }]);
    for (const holder of ["ada", "bob"] as const) expect(await stop(holder)).toMatchObject([403, { code: "owner_required" }]);
  });
});

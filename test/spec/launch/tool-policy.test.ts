import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { waitingCall } from "../../harness/waiting-call.ts";

const TOKEN = "owner-token-of-the-policy";
let folder: ReturnType<typeof temporaryFolder>;
let service: PorticoProcess | undefined;
const undo: (() => unknown)[] = [];
beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder.path, "agents/writer"), { recursive: true });
  const definition = { name: "Writer", tools: ["SendUserMessage", "DelegateToAgent"] };
  writeFileSync(join(folder.path, "agents/writer/agent.json"), JSON.stringify(definition));
});
afterEach(async () => {
  for (const step of undo.splice(0)) await step();
  await service?.[Symbol.asyncDispose]();
  service = undefined;
  folder.remove();
});

const start = async (preset: "local" | "agent", toolPolicy: object) => {
  const tokens = [{ token: TOKEN, userId: "ada", role: "owner" }];
  const config = { shutdownGraceMs: 100, agent: { tokens, toolPolicy } };
  service = await startPortico({ cwd: folder.path, args: [preset], config });
  return service.url("agent");
};
const call = async (url: string, method: string, path: string, body?: object) => {
  const headers = { "x-agent-service-token": TOKEN, ...(body && { "content-type": "application/json" }) };
  const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: response.status, body: (await response.json()) as any };
};

it.each(["local", "agent"] as const)(
  "`agent.toolPolicy` lets a call wait for as long as it says, and its decision counts (preset %s)",
  async (preset) => {
    const url = await start(preset, { tools: { SendUserMessage: "ask" }, approvalTimeout: "90m" });
    const { runId, callId, socket } = await waitingCall(url, TOKEN, "writer", "Use SendUserMessage");
    undo.push(() => socket.disconnect());
    const { approvals } = (await call(url, "GET", "/api/approvals")).body;
    expect(approvals).toMatchObject([{ runId, callId, toolId: "SendUserMessage" }]);
    expect(Date.parse(approvals[0].expiresAt) - Date.parse(approvals[0].askedAt)).toBe(90 * 60_000);
    const body = { decision: "approve", standing: true };
    const ended = new Promise<any>((resolve) => socket.once("query:complete", resolve));
    expect((await call(url, "POST", `/api/runs/${runId}/approvals/${callId}`, body)).status).toBe(200);
    expect((await ended).terminal.status).toBe("completed");
    // A consent to all later calls has an action of its own.
    const { items } = (await call(url, "GET", "/api/audit?action=approval.approve-standing")).body;
    expect(items).toMatchObject([{ object: expect.stringMatching(`^${runId}/`), who: { role: "owner", userId: "ada" } }]);
  },
);

it("`agent.toolPolicy` asks by risk level, and says nothing of tools that it denies", async () => {
  const riskLevels = { low: "ask", medium: "ask", high: "ask", critical: "ask" };
  const url = await start("local", { tools: { SendUserMessage: "deny" }, riskLevels });
  const { told, socket } = await waitingCall(url, TOKEN, "writer", "Use SendUserMessage, and use DelegateToAgent");
  undo.push(() => socket.disconnect());
  expect(told).toMatchObject({ toolId: "DelegateToAgent", status: "waiting" });
  expect((await call(url, "GET", "/api/approvals")).body.approvals).toHaveLength(1);
});

it("a call that no person decides in time is recorded in the audit, as an act of the instance", async () => {
  const url = await start("local", { tools: { SendUserMessage: "ask" }, approvalTimeout: "1s" });
  const { runId, socket } = await waitingCall(url, TOKEN, "writer", "Use SendUserMessage");
  undo.push(() => socket.disconnect());
  const entries = async () => (await call(url, "GET", "/api/audit?action=approval.expire")).body.items;
  const entry = { action: "approval.expire", object: expect.stringMatching(`^${runId}/`), who: { role: "instance" } };
  await expect.poll(entries).toMatchObject([entry]);
});

it.each([
  [{ tools: { x: "maybe" } }, "agent.toolPolicy.tools.x"],
  [{ riskLevels: { extreme: "ask" } }, "agent.toolPolicy.riskLevels.extreme"],
  [{ approvalTimeout: "30d" }, "agent.toolPolicy.approvalTimeout"],
])("%j is refused at the start, by its key", async (toolPolicy, key) => {
  await expect(start("local", toolPolicy)).rejects.toThrow(key);
});

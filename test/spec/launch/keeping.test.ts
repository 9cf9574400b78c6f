import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectAgent } from "@portico/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { png } from "../../harness/files-app.ts";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

vi.setConfig({ testTimeout: 90_000 });

const TOKEN = "owner-token-0123456789";
const agent = { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }] };
const headers = { "x-agent-service-token": TOKEN };

/** Before a service: its clock is ahead by this many days, and what it does a minute after its start, it does at once. */
const after = (days: number) => `
  const { now } = Date, { setTimeout } = globalThis;
  Date.now = () => now() + ${days} * 86_400_000;
  globalThis.setTimeout = (run, ms, ...given) => setTimeout(run, ms === 60_000 ? 1 : ms, ...given);
`;

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder.path, "agents", "helper"), { recursive: true });
  writeFileSync(join(folder.path, "agents", "helper", "agent.json"), JSON.stringify({ name: "Helper" }));
});
afterEach(() => folder.remove());

const start = (preset: string, days: number, settings: object = {}, env: Record<string, string> = {}) =>
  startPortico({
    cwd: folder.path,
    args: [preset],
    config: { agent: { ...agent, ...settings } },
    env,
    ...(days > 0 && { before: after(days) }),
  });
const upload = async (service: PorticoProcess, path: string, bytes: Uint8Array | string, name: string, type: string) => {
  const form = new FormData();
  form.append("file", new Blob([bytes as Uint8Array<ArrayBuffer>], { type }), name);
  return (await fetch(service.url("agent") + path, { method: "POST", headers, body: form })).json();
};
const fill = async (service: PorticoProcess) => {
  await using client = connectAgent({ baseURL: service.url("agent"), token: TOKEN });
  expect((await client.submit({ agentId: "helper", prompt: "Hello" }).ended).status).toBe("completed");
  const { attachmentId } = await upload(service, "/api/attachments", "Tea", "note.txt", "text/plain");
  const { mediaId } = await upload(service, "/api/media/upload", png(), "tea.png", "image/png");
  return { attachmentId, mediaId };
};
/** What of it is there: runs, attachments, media. */
const left = async (service: PorticoProcess, { attachmentId, mediaId }: Awaited<ReturnType<typeof fill>>) => {
  const at = service.url("agent");
  const { runs } = await (await fetch(`${at}/api/runs`, { headers })).json();
  const { status } = await fetch(`${at}/api/attachments/${attachmentId}`, { headers });
  const body = JSON.stringify({ mediaIds: [mediaId] });
  const links = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
  const { missing } = await (await fetch(`${at}/api/media/access-urls`, links)).json();
  return [runs.length === 1, status === 200, missing.length === 0];
};

describe.each(["local", "agent"])("portico start %s", (preset) => {
  it("keeps runs, attachments and media forever, or as agent.keepRuns, keepAttachments and keepMedia say", async () => {
    let filled: Awaited<ReturnType<typeof fill>>;
    {
      await using service = await start(preset, 0);
      filled = await fill(service);
      await service.stop();
    }
    const leftWith = async (days: number, settings: object, env: Record<string, string>, wanted: readonly boolean[]) => {
      await using service = await start(preset, days, settings, env);
      await expect.poll(() => left(service, filled), { timeout: 30_000 }).toEqual(wanted);
      await service.stop();
    };
    await leftWith(400, { keepRuns: "500d", keepAttachments: "forever" }, {}, [true, true, true]);
    await leftWith(40, { keepAttachments: "30d" }, {}, [true, false, true]);
    await leftWith(40, {}, { PORTICO_AGENT_KEEP_MEDIA: "30d" }, [true, false, false]);
    await leftWith(40, { keepRuns: "60d" }, { PORTICO_AGENT_KEEP_RUNS: "30d" }, [false, false, false]);
  });
});

it.each(["keepRuns", "keepAttachments", "keepMedia"])("a start refuses an invalid agent.%s", async (key) => {
  for (const value of ["soon", "5m", 90]) {
    const pattern = new RegExp(`ended with 78: agent\\.${key}: expected a duration`);
    await expect(start("agent", 0, { [key]: value })).rejects.toThrow(pattern);
  }
});

import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { connectAgent } from "@portico/client";
import { afterAll, expect, it } from "vitest";
import { png } from "../harness/media-samples.ts";
import { openCommand, type PorticoProcess, runPortico, startPortico, temporaryFolder } from "../harness/portico-process.ts";

const LIVES = 2;
/** New lives begin until this time. A fixed number of lives would not limit the time, because stored work grows. */
const LONG_MS = process.env.PORTICO_LONG ? 9 * 60_000 : 0;
const BACKUPS = process.env.PORTICO_LONG ? 4 : 2;
const folder = temporaryFolder();
const dataDir = join(folder.path, ".portico");
afterAll(() => folder.remove());

interface Accepted {
  /** Digests of uploads, by key. */
  readonly files: Map<string, string>;
  readonly requests: Set<string>;
  triggers: number;
}

it(
  `backups under load, some killed, of a service that is killed: each complete one has what was accepted before it, whole (${LIVES} lives${LONG_MS > 0 ? ` or more, for ${LONG_MS / 60_000} minutes` : ""})`,
  async () => {
    mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
    writeFileSync(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
    const accepted: Accepted = { files: new Map(), requests: new Set(), triggers: 0 };
    const removals = { begun: new Set<string>() };
    const endsAt = Date.now() + LONG_MS;
    let [complete, life] = [0, 0];
    let last = "";
    for (; life < LIVES || Date.now() < endsAt; life++) {
      const service = await startPortico({ cwd: folder.path, hasOwnProcess: true });
      const over = new AbortController();
      const secret = await saveWebhook(service);
      const remover = removeFiles(removals.begun);
      const load = Promise.all([
        ...[0, 1, 2].map(() => uploadUntil(over.signal, service, accepted)),
        askUntil(over.signal, service, accepted),
        triggerUntil(over.signal, service, secret, accepted),
      ]);
      for (let at = 0; at < BACKUPS; at++) {
        await expect
          .poll(() => accepted.files.size + accepted.requests.size, { timeout: 30_000 })
          .toBeGreaterThan(complete * 10 + 10);
        const before = { files: new Map(accepted.files), requests: [...accepted.requests], triggers: accepted.triggers };
        const file = join(folder.path, `${life}-${at}.tar`);
        await using backup = openCommand(["backup", file, ...(at % 2 === 0 ? [] : ["--gzip"])], { cwd: folder.path });
        // The last backup of a life outlives its service.
        if (at === BACKUPS - 1) void sleep(200 + Math.random() * 600).then(() => service.signal("SIGKILL"));
        else if (Math.random() < 0.5) void sleep(300 + Math.random() * 700).then(() => backup.signal("SIGKILL"));
        const { code, stderr } = await backup.ended;
        if (code === null) {
          if (existsSync(file)) await restored(file);
          continue;
        }
        expect([code, stderr]).toEqual([0, ""]);
        const copy = await restored(file);
        check(copy, before, removals.begun);
        complete++;
        last = file;
        rmSync(copy, { recursive: true });
        if (at < BACKUPS - 1) rmSync(file);
      }
      over.abort();
      await load;
      await service.exited;
      remover.kill("SIGKILL");
      await once(remover, "close");
    }
    expect(complete).toBeGreaterThanOrEqual(life);
    expect({ removals: removals.begun.size, requests: accepted.requests.size, triggers: accepted.triggers }).toEqual({
      removals: expect.toSatisfy((count: number) => count > life),
      requests: expect.toSatisfy((count: number) => count > life),
      triggers: expect.toSatisfy((count: number) => count > life),
    });
    if (LONG_MS > 0) {
      const counts = { lives: life, complete, files: accepted.files.size, removals: removals.begun.size };
      console.warn(JSON.stringify({ ...counts, requests: accepted.requests.size, triggers: accepted.triggers }));
    }

    // An instance made of the last copy starts, and continues the accepted work.
    renameSync(dataDir, `${dataDir}-away`);
    expect(await runPortico(["restore", last], { cwd: folder.path })).toMatchObject({ code: 0 });
    await using service = await startPortico({ cwd: folder.path, hasOwnProcess: true });
    await using client = connectAgent({ baseURL: service.url("agent"), token: tokenOf() });
    expect((await client.submit({ agentId: "helper", prompt: "Hello" }).ended).status).toBe("completed");
    expect(await service.stop()).toBe(0);
    const again = await runPortico(["doctor", "--deep", "--json"], { cwd: folder.path });
    expect(JSON.parse(again.stdout).filter(({ isWrong }: { isWrong: boolean }) => isWrong)).toEqual([]);
  },
  60_000 + 2 * LONG_MS + LIVES * BACKUPS * 40_000,
);

/** A restored copy in which a deep check finds nothing. */
async function restored(file: string): Promise<string> {
  const copy = `${file}-restored`;
  rmSync(copy, { recursive: true, force: true });
  expect(await runPortico(["restore", file, "--data-dir", copy], { cwd: folder.path })).toMatchObject({ code: 0, stderr: "" });
  const { code, stdout } = await runPortico(["doctor", "--deep", "--json", "--data-dir", copy], { cwd: folder.path });
  const findings = JSON.parse(stdout) as { about: string; isWrong: boolean; isWarning?: boolean }[];
  expect(findings.filter(({ isWrong, isWarning }) => isWrong || isWarning)).toEqual([]);
  expect(code).toBe(0);
  return copy;
}

/** The copy contains everything that was accepted before it, except files whose removal has begun by now. */
function check(
  copy: string,
  before: { readonly files: ReadonlyMap<string, string>; readonly requests: readonly string[]; readonly triggers: number },
  removed: ReadonlySet<string>,
): void {
  const database = new DatabaseSync(join(copy, "records.sqlite"), { readOnly: true });
  try {
    for (const [key, digest] of before.files) {
      const [collection, id = ""] = key.split("/");
      const record = database.prepare(`SELECT 1 FROM "${collection}" WHERE id = ?`).get(id);
      if (removed.has(key) && !record) continue;
      expect(record, key).toBeDefined();
      expect(digestOf(readFileSync(join(copy, "files", key)))).toBe(digest);
    }
    const texts = database.prepare(`SELECT value FROM "client-requests"`).all();
    const stored = texts.map(({ value }) => String(value)).join("\n");
    expect(before.requests.filter((id) => !stored.includes(id))).toEqual([]);
    const works = database.prepare(`SELECT count(*) AS count FROM "_engine_work" WHERE kind = 'background-turn'`).get();
    expect(Number(works?.["count"])).toBeGreaterThanOrEqual(before.triggers);
  } finally {
    database.close();
  }
}

function tokenOf(): string {
  return JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")).agentServiceToken;
}

/** Removes files beside the service. Reports each key before its removal. */
function removeFiles(begun: Set<string>): ChildProcess {
  const remover = spawn(process.execPath, [join(import.meta.dirname, "processes/remove-files.ts"), dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let rest = "";
  remover.stdout!.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) begun.add(line);
  });
  return remover;
}

/** Repeats until the load ends. A killed service refuses every request. */
async function repeatUntil(signal: AbortSignal, once: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await once().catch(() => {});
    await sleep(10);
  }
}

function uploadUntil(signal: AbortSignal, service: PorticoProcess, accepted: Accepted): Promise<void> {
  const headers = { "x-agent-service-token": tokenOf() };
  return repeatUntil(signal, async () => {
    const isMedia = Math.random() < 0.5;
    const bytes = isMedia ? png(1, 1, randomBytes(100_000)) : randomBytes(1 + Math.floor(Math.random() * 500_000));
    const type = isMedia ? "image/png" : "application/octet-stream";
    const form = new FormData();
    form.append("file", new Blob([bytes as Buffer<ArrayBuffer>], { type }), "file");
    const url = service.url("agent") + (isMedia ? "/api/media/upload" : "/api/attachments");
    const answer = await fetch(url, { method: "POST", headers, body: form, signal });
    const { attachmentId, mediaId } = (await answer.json()) as { attachmentId?: string; mediaId?: string };
    if (answer.ok) accepted.files.set(isMedia ? `media/${mediaId}` : `attachments/${attachmentId}`, digestOf(bytes));
  });
}

async function askUntil(signal: AbortSignal, service: PorticoProcess, accepted: Accepted): Promise<void> {
  await using client = connectAgent({ baseURL: service.url("agent"), token: tokenOf() });
  await repeatUntil(signal, async () => {
    const query = client.submit({ agentId: "helper", prompt: "Hello" });
    const late = AbortSignal.any([signal, AbortSignal.timeout(10_000)]);
    const given = new Promise<undefined>((resolve) => late.addEventListener("abort", () => resolve(undefined), { once: true }));
    if (await Promise.race([query.started, given])) accepted.requests.add(query.clientRequestId);
  });
}

async function saveWebhook(service: PorticoProcess): Promise<string> {
  const headers = { "x-agent-service-token": tokenOf(), "content-type": "application/json" };
  const url = `${service.url("agent")}/api/agents/helper/webhooks`;
  const body = JSON.stringify({ promptTemplate: "About {{payload.what}}", toolIds: [] });
  const saved = (await (await fetch(`${url}/events/build`, { method: "PUT", headers, body })).json()) as { secret?: string };
  if (saved.secret !== undefined) return saved.secret;
  const rotated = await fetch(`${url}/secret/rotate`, { method: "POST", headers });
  return ((await rotated.json()) as { secret: string }).secret;
}

function triggerUntil(signal: AbortSignal, service: PorticoProcess, secret: string, accepted: Accepted): Promise<void> {
  return repeatUntil(signal, async () => {
    const answer = await fetch(`${service.url("agent")}/api/webhook/helper`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ event: "build", payload: { what: "it" } }),
      signal,
    });
    if (answer.status === 200) accepted.triggers++;
    await sleep(50);
  });
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

import { type ChildProcess, fork } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { afterAll, expect, it } from "vitest";
import { openAdapter } from "../conformance/open-adapter.ts";
import { TOKENS } from "../harness/agent-app.ts";
import { png } from "../harness/files-app.ts";
import { temporaryFolder } from "../harness/portico-process.ts";

const LIVES = process.env.PORTICO_LONG ? 50 : 2;
const WRITERS = 6;
const ATTACHMENTS = 200;
const folder = temporaryFolder();
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  folder.remove();
});

interface Acknowledged {
  readonly attachmentId?: string;
  readonly mediaId?: string;
  readonly size: number;
  readonly digest: string;
}

it(
  `${LIVES} kills at any instant during uploads: what was acknowledged is there whole, no half file stays, and the quota is what is stored`,
  async () => {
    const acknowledged: Acknowledged[] = [];
    let attachments = 0;
    for (let life = 0; life < LIVES; life++) {
      const { child, url } = await begin();
      const exited = once(child, "exit");
      const over = new AbortController();
      let isDying = false;
      const writers = Array.from({ length: WRITERS }, async (_, writer) => {
        while (!over.signal.aborted) {
          // A user may have 256 attachments. The number of media is not limited: they keep later lives busy.
          const isMedia = writer % 2 === 1 || attachments >= ATTACHMENTS;
          const bytes = isMedia ? png(1, 1, 200_000) : randomBytes(1 + Math.floor(Math.random() * 2_000_000));
          if (!isMedia) attachments++;
          const done = await upload(url, bytes, isMedia, over.signal).catch(() => undefined);
          if (done) acknowledged.push({ ...done, size: bytes.length, digest: digestOf(bytes) });
          // Some files are stored, and others are being uploaded.
          if (done && !isDying) setTimeout(() => child.kill("SIGKILL"), Math.random() * 250);
          isDying ||= done !== undefined;
        }
      });
      expect(await exited).toEqual([null, "SIGKILL"]);
      over.abort();
      await Promise.all(writers);
    }
    expect(acknowledged.length).toBeGreaterThanOrEqual(LIVES);

    const { url, child } = await begin();
    for (const { attachmentId, mediaId, digest } of acknowledged) {
      const bytes = attachmentId === undefined ? await readMedia(url, mediaId!) : await readAttachment(url, attachmentId);
      expect(digestOf(bytes)).toBe(digest);
    }
    child.kill("SIGKILL");
    await once(child, "exit");

    const files = join(folder.path, "files");
    const stored = new Map(
      readdirSync(join(files, "attachments")).map((name) => [name, readFileSync(join(files, "attachments", name)).length]),
    );
    const records = await openAdapter(sqliteRecords({ path: join(folder.path, "records.sqlite") }));
    const known = records.port.collection<{ attachmentId: string; size: number; sha256: string }>({ name: "attachments" });
    const usages = records.port.collection<{ count: number; bytes: number }>({ name: "attachment-usage" });
    let [count, bytes] = [0, 0];
    for (const [attachmentId, size] of stored) {
      const record = (await known.get(attachmentId))?.value;
      // An upload that was stored before the kill and not acknowledged does not count. It is removed later.
      if (!record) continue;
      expect(record.size).toBe(size);
      expect(digestOf(readFileSync(join(files, "attachments", attachmentId)))).toBe(record.sha256);
      count++;
      bytes += size;
    }
    const [usage] = (await usages.query({ limit: 10 })).items;
    expect(usage?.value).toEqual({ count, bytes });
    await records.close();
    // The last life removed the incomplete uploads of the others, and was killed without an upload.
    const rest = readdirSync(join(files, ".tmp"), { recursive: true, withFileTypes: true }).filter(
      (entry) => entry.isFile() && !["lock", ".format"].includes(entry.name),
    );
    expect(rest.map(({ name }) => name)).toEqual([]);
  },
  40_000 + LIVES * 20_000,
);

async function begin(): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const child = fork(join(import.meta.dirname, "processes/files-service.ts"), [folder.path]);
  children.push(child);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

const headers = { "x-agent-service-token": TOKENS.owner };

async function upload(url: string, bytes: Buffer, isMedia: boolean, signal: AbortSignal) {
  const form = new FormData();
  const type = isMedia ? "image/png" : "application/octet-stream";
  form.append("file", new Blob([bytes as Buffer<ArrayBuffer>], { type }), "file");
  const path = isMedia ? "/api/media/upload" : "/api/attachments";
  const answer = await fetch(url + path, { method: "POST", headers, body: form, signal });
  const body = (await answer.json()) as { attachmentId?: string; mediaId?: string };
  return answer.ok ? body : undefined;
}

async function readAttachment(url: string, attachmentId: string): Promise<Buffer> {
  const answer = await fetch(`${url}/api/attachments/${attachmentId}`, { headers });
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

async function readMedia(url: string, mediaId: string): Promise<Buffer> {
  const asked = await fetch(`${url}/api/media/access-urls`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ mediaIds: [mediaId] }),
  });
  const { items } = (await asked.json()) as { items: readonly { url: string }[] };
  const answer = await fetch(url + items[0]!.url);
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

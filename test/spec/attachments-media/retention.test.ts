import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createManualClock } from "@portico/adapters/clock/manual";
import { ports } from "@portico/core";
import { createMedia } from "../../../plugins/src/attachments-media/media.ts";
import { createAttachments } from "../../../plugins/src/attachments-media/attachments.ts";
import { describe, expect, it, vi } from "vitest";
import { type FilesService, type FilesServiceOptions, png, startFilesService } from "../../harness/files-app.ts";
import { createGate } from "../../harness/gate.ts";

const HOUR = 3_600_000;
const keeping = { keepAttachments: "2h", keepMedia: "2h" };

/** A service that keeps files for two hours, with a clock that advances only when the test says so. */
async function start(options: FilesServiceOptions = {}) {
  const clock = options.clock ?? createManualClock();
  const service = await startFilesService({ keeping, ...options, clock });
  return Object.assign(service, { clock });
}
type Service = Awaited<ReturnType<typeof start>>;

const attach = async (service: FilesService, bytes: string, holder: "owner" | "member" = "owner") => {
  const { status, body } = await service.upload(holder, "/api/attachments", { bytes });
  expect(status).toBe(201);
  return body as { attachmentId: string; fileReference: string };
};
const picture = async (service: FilesService): Promise<string> => {
  const { status, body } = await service.upload("owner", "/api/media/upload", { bytes: png(), name: "a.png", type: "image/png" });
  expect(status).toBe(200);
  return body.mediaId;
};
const statusOf = async (
  service: FilesService,
  { attachmentId }: { attachmentId: string },
  holder: "owner" | "member" = "owner",
) => (await service.call(holder, "GET", `/api/attachments/${attachmentId}`).catch(() => ({ status: 200 }))).status;
const filesIn = (service: FilesService, folder: string): readonly string[] => {
  try {
    return readdirSync(join(service.filesDir, folder), { recursive: true })
      .map(String)
      .filter((name) => name.includes("-"));
  } catch {
    return [];
  }
};
/** A process that continues with the stores of a killed one, this much later. */
const later = async (killed: Service, ms: number, options: FilesServiceOptions = {}) => {
  const clock = createManualClock({ startAt: new Date(killed.clock.now() + ms).toISOString() });
  const next = await start({ ...options, clock, dataDir: killed.dataDir });
  const { close: closeNext } = next;
  const close = async () => {
    await closeNext();
    await killed.close().catch(() => {});
  };
  return Object.assign(next, { close, [Symbol.asyncDispose]: close });
};
/** Lets this time pass, and then as many hours as it takes until a sweep has removed this attachment. */
const passUntilRemoved = async (service: Service, hours: number, file: { attachmentId: string }) => {
  await service.clock.jump(hours * HOUR);
  const status = async () => {
    await service.clock.advance(HOUR / 60);
    return statusOf(service, file);
  };
  await expect.poll(status).toBe(404);
};

describe("attachments that were not used for as long as they are kept", () => {
  it("are removed, with their bytes, while newer ones stay", async () => {
    await using service = await start();
    const old = await attach(service, "old");
    await service.clock.jump(1.5 * HOUR);
    const young = await attach(service, "young");
    await passUntilRemoved(service, 0.5, old);
    expect(await statusOf(service, young)).toBe(200);
    await expect.poll(() => filesIn(service, "attachments")).toEqual([expect.stringContaining(young.attachmentId)]);
  });

  it("make room for others: a user with 256 attachments is not locked out", async () => {
    await using service = await start();
    const attachments = createAttachments(service.app.port(ports.records));
    const old = await attach(service, "first");
    const createdAt = new Date(service.clock.now()).toISOString();
    const about = { userId: "owner", name: "n", mimeType: "text/plain", size: 1, sha256: "0".repeat(64), createdAt };
    for (let at = 1; at < 256; at++)
      expect(await attachments.add({ ...about, attachmentId: crypto.randomUUID() }, [])).toBeUndefined();
    expect((await service.upload("owner", "/api/attachments", { bytes: "x" })).body.error).toBe("attachment_limit");
    const other = await attach(service, "another user's", "member");
    await service.clock.jump(2 * HOUR);
    const left = async () => {
      await service.clock.advance(HOUR / 60);
      const counts: number[] = [];
      for await (const page of attachments.list("owner")) counts.push(page.length);
      return counts.reduce((sum, count) => sum + count, 0);
    };
    await expect.poll(left).toBe(0);
    expect(await statusOf(service, old)).toBe(404);
    await expect.poll(() => statusOf(service, other, "member")).toBe(404);
    // All of the quota is free again, and not more than that.
    for (let at = 0; at < 256; at++)
      expect(await attachments.add({ ...about, attachmentId: crypto.randomUUID() }, [])).toBeUndefined();
    expect((await service.upload("owner", "/api/attachments", { bytes: "x" })).body.error).toBe("attachment_limit");
  });

  it("stay forever if no time is set", async () => {
    const first = await start({ keeping: {} });
    const [old, media] = [await attach(first, "old"), await picture(first)];
    await using service = await later(first, 10 * 365 * 24 * HOUR, { keeping: {} });
    await service.clock.jump(2 * HOUR);
    expect(await statusOf(service, old)).toBe(200);
    const links = await service.call("owner", "POST", "/api/media/access-urls", { mediaIds: [media] });
    expect(links.body.missing).toEqual([]);
  });

  it("stay while a query uses them that executes or waits, and are unknown to queries afterwards", async () => {
    await using service = await start();
    const [file, queued] = [await attach(service, "used"), await attach(service, "used by a waiting query")];
    const [shown, control] = [await picture(service), await attach(service, "control")];
    const [begun, gate] = [createGate(), createGate()];
    service.engine.otherwise(async () => {
      begun.open();
      await gate.opened;
    });
    const client = await service.connect("owner");
    await expect.poll(() => client.socket.connected).toBe(true);
    const more = { mediaRefs: [{ mediaId: shown }] };
    const first = await client.start("Look", more, { fileReferences: [file.fileReference, file.fileReference] });
    expect(first.status).toBe(202);
    await begun.opened;
    const { conversationId } = await client.event("query:started", first.clientRequestId);
    const second = await client.start("And this", {}, { conversationId, fileReferences: [queued.fileReference] });
    expect(second.status).toBe(202);

    // Younger than the files of the queries: when it is gone, those were looked at.
    const younger = await attach(service, "younger");
    await passUntilRemoved(service, 2, control);
    await passUntilRemoved(service, 1, younger);
    expect([await statusOf(service, file), await statusOf(service, queued)]).toEqual([200, 200]);
    expect((await service.call("owner", "POST", "/api/media/access-urls", { mediaIds: [shown] })).body.missing).toEqual([]);

    gate.open();
    // The client's connection did not survive the hours.
    const run = async () => (await service.call("owner", "GET", "/api/runs")).body.runs[0];
    await expect.poll(run).toMatchObject({ status: "idle", messageCount: 4 });
    await passUntilRemoved(service, 2, file);
    await passUntilRemoved(service, 0, queued);
    const missing = async () => {
      await service.clock.advance(HOUR / 60);
      return (await service.call("owner", "POST", "/api/media/access-urls", { mediaIds: [shown] })).body.missing;
    };
    await expect.poll(missing).toEqual([shown]);
    const later = await service.connect("owner");
    await expect.poll(() => later.socket.connected).toBe(true);
    const refused = await later.start("Look", {}, { fileReferences: [file.fileReference] });
    expect([refused.status, refused.body.code]).toEqual([400, "unknown_file"]);
    const without = await later.start("Look", more);
    expect([without.status, without.body.code]).toEqual([400, "unknown_media"]);
  });

  it("count from the last query that used them", async () => {
    await using service = await start();
    const [used, unused] = [await attach(service, "used"), await attach(service, "unused")];
    await service.clock.jump(1.5 * HOUR);
    const client = await service.connect("owner");
    await expect.poll(() => client.socket.connected).toBe(true);
    const { clientRequestId } = await client.start("Look", {}, { fileReferences: [used.fileReference] });
    await client.ended(clientRequestId);
    const younger = await attach(service, "uploaded when the other was used");
    await passUntilRemoved(service, 0.5, unused);
    expect(await statusOf(service, used)).toBe(200);
    await passUntilRemoved(service, 1, younger);
    await passUntilRemoved(service, 0, used);
  });

  it("are removed or accepted with a query, never both", async () => {
    await using service = await start();
    const file = await attach(service, "wanted by two");
    const records = service.app.port(ports.records);
    const attachments = createAttachments(records);
    const stored = (await attachments.find("owner", file.attachmentId))!;
    // The query found the file, and the sweep removes it before the admission is written.
    const late = await attachments.hold("owner", file.attachmentId, "turn_1", stored.createdAt);
    expect(await attachments.remove(stored, () => true, [])).toBe(true);
    await expect(records.batch(late!)).rejects.toThrow(ports.RecordConflict);
    expect(await attachments.hold("owner", file.attachmentId, "turn_1", stored.createdAt)).toBeUndefined();
    // The sweep found it unused, and the admission is written before the removal.
    const other = (await attachments.find("owner", (await attach(service, "again")).attachmentId))!;
    const mayRemove = vi.fn(() => true);
    const query = vi.spyOn(records, "batch").mockImplementationOnce(async (writes) => {
      const hold = await attachments.hold("owner", other.attachmentId, "turn_2", other.createdAt);
      await records.batch(hold!);
      return records.batch(writes);
    });
    expect(await attachments.remove(other, mayRemove, [])).toBe(false);
    query.mockRestore();
    expect(await attachments.find("owner", other.attachmentId)).toBeDefined();
  });
});

describe("media that was not used for as long as it is kept", () => {
  it("is removed: links to it lead nowhere, and no other user can read it on the way", async () => {
    await using service = await start();
    const mediaId = await picture(service);
    const control = await attach(service, "control");
    const blobs = service.app.port(ports.blobs);
    const links: unknown[] = [];
    const real = blobs.remove.bind(blobs);
    vi.spyOn(blobs, "remove").mockImplementation(async (key) => {
      if (key.startsWith("media/")) {
        const { body } = await service.call("member", "POST", "/api/media/access-urls", { mediaIds: [mediaId] });
        links.push(...(body.items ?? []));
      }
      return real(key);
    });
    await passUntilRemoved(service, 2, control);
    const missing = async () => {
      await service.clock.advance(HOUR / 60);
      return (await service.call("owner", "POST", "/api/media/access-urls", { mediaIds: [mediaId] })).body.missing;
    };
    await expect.poll(missing).toEqual([mediaId]);
    expect(links).toEqual([]);
    await expect.poll(() => filesIn(service, "media")).toEqual([]);
  });
});

it("a removal that a kill interrupts before the bytes are removed is completed by the next process", async () => {
  const first = await start();
  const [file, mediaId] = [await attach(first, "old"), await picture(first)];
  vi.spyOn(first.app.port(ports.blobs), "remove").mockRejectedValue(new ports.BlobsUnavailable("Killed"));
  await passUntilRemoved(first, 2, file);
  // Not by a call: it would keep the record in memory if it came before the removal.
  const media = createMedia({ records: first.app.port(ports.records), blobs: first.app.port(ports.blobs) });
  const owned = async () => {
    await first.clock.advance(HOUR / 60);
    return (await Array.fromAsync(media.list("owner"))).flat();
  };
  await expect.poll(owned).toEqual([]);
  expect([filesIn(first, "attachments").length, filesIn(first, "media").length]).toEqual([1, 1]);
  await using second = await later(first, HOUR);
  await expect.poll(() => [...filesIn(second, "attachments"), ...filesIn(second, "media")]).toEqual([]);
  // Other users never see the file in between: it would count as one from before files had owners.
  const links = await second.call("member", "POST", "/api/media/access-urls", { mediaIds: [mediaId] });
  expect(links.body.missing).toEqual([mediaId]);
});

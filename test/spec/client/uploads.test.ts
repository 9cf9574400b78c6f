import { createHash, randomBytes } from "node:crypto";
import { openAsBlob, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AgentClient, connectAgent } from "@portico/client";
import { CallFailed } from "@portico/core/client";
import type { ports } from "@portico/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { TOKENS } from "../../harness/agent-app.ts";
import { type FilesService, png, startFilesService } from "../../harness/files-app.ts";

const MIB = 1024 * 1024;

let service: FilesService;
let client: AgentClient;
beforeAll(async () => {
  service = await startFilesService();
});
beforeEach(() => {
  client = connectAgent({ baseURL: service.url, token: TOKENS.owner, transports: ["websocket"] });
});
afterEach(() => client.close());
afterAll(() => service.close());

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
/** A stream of these chunks, and what became of it. */
function streamOf(...chunks: readonly Uint8Array[]) {
  const source = { isCancelled: false, taken: 0 };
  const left = [...chunks];
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const next = left.shift();
      if (!next) return controller.close();
      source.taken++;
      controller.enqueue(next);
    },
    cancel() {
      source.isCancelled = true;
    },
  });
  return { stream, source };
}
/** Never ends by itself. */
function endless() {
  const cancelled = Promise.withResolvers<unknown>();
  const begun = Promise.withResolvers<void>();
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(64 * 1024));
      begun.resolve();
    },
    cancel: (reason) => cancelled.resolve(reason),
  });
  return { stream, begun: begun.promise, cancelled: cancelled.promise };
}
const kept = () =>
  readdirSync(service.filesDir, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && !["lock", ".format"].includes(entry.name),
  ).length;

describe("uploadAttachment", () => {
  it("sends a File with its name and type, and gives the receipt", async () => {
    const bytes = randomBytes(300_000);
    const receipt = await client.uploadAttachment(new File([bytes], 'Grüße "zwei".txt', { type: "text/plain" }));
    expect(receipt).toEqual({
      attachmentId: expect.any(String),
      name: 'Grüße "zwei".txt',
      mimeType: "text/plain",
      size: bytes.length,
      sha256: sha256(bytes),
      fileReference: `/attachments/${receipt.attachmentId}`,
    });
    const answer = await client.calls.downloadAttachment({ params: { attachmentId: receipt.attachmentId } });
    expect(sha256(new Uint8Array(await answer.arrayBuffer()))).toBe(receipt.sha256);
  });

  it("sends a Blob, a file of this machine as one, under the name and type that are given", async () => {
    const bytes = randomBytes(MIB);
    const path = join(service.dataDir, "to-send");
    writeFileSync(path, bytes);
    const plain = await client.uploadAttachment(await openAsBlob(path));
    expect(plain).toMatchObject({ name: "file", mimeType: "application/octet-stream", sha256: sha256(bytes) });
    const named = await client.uploadAttachment(await openAsBlob(path), { name: "a.zip", type: "application/zip" });
    expect(named).toMatchObject({ name: "a.zip", mimeType: "application/zip", sha256: sha256(bytes) });
  });

  it("sends a stream while it is made", async () => {
    const chunks = Array.from({ length: 40 }, () => randomBytes(100_000));
    const { stream } = streamOf(...chunks);
    const receipt = await client.uploadAttachment(stream, { name: 'ä "b"\r\n.bin', type: "text/css" });
    expect(receipt).toMatchObject({ name: 'ä "b".bin', mimeType: "text/css", sha256: sha256(Buffer.concat(chunks)) });
  });

  it("rejects with CallFailed and the service's code: empty, and too large as a Blob and as a stream", async () => {
    const failed = (source: Blob | ReadableStream<Uint8Array>) =>
      client.uploadAttachment(source).then(
        () => "taken",
        (error: unknown) => (CallFailed.is(error) ? [error.status, error.code] : error),
      );
    expect(await failed(new Blob([]))).toEqual([400, "attachment_empty"]);
    expect(await failed(new Blob([new Uint8Array(20 * MIB + 100_000)]))).toEqual([413, "attachment_too_large"]);
    const { stream, cancelled } = endless();
    expect(await failed(stream)).toEqual([413, "attachment_too_large"]);
    await cancelled;
  });

  it("ends with the signal's reason, which its stream hears of, and nothing is kept", async () => {
    const before = kept();
    const stop = new AbortController();
    const { stream, begun, cancelled } = endless();
    const upload = client.uploadMedia(stream, { type: "audio/mpeg", signal: stop.signal });
    const outcome = expect(upload).rejects.toThrow("Enough");
    await begun;
    stop.abort(new Error("Enough"));
    await outcome;
    await cancelled;
    await expect.poll(kept).toBe(before);
  });

  it("fails with a stream that fails, and nothing is kept", async () => {
    const before = kept();
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(10)),
      pull: (controller) => controller.error(new Error("The source broke")),
    });
    await expect(client.uploadAttachment(stream)).rejects.toThrow();
    await expect.poll(kept).toBe(before);
  });

  it("ends when the client is closed, and does not begin afterwards", async () => {
    const { stream, begun } = endless();
    const upload = client.uploadMedia(stream, { type: "audio/mpeg" });
    const outcome = expect(upload).rejects.toThrow("closed");
    await begun;
    client.close();
    await outcome;
    await expect(client.uploadAttachment(new Blob(["x"]))).rejects.toThrow("closed");
  });

  it("no type gets into the form's head that no header can hold", async () => {
    await expect(client.uploadAttachment(streamOf().stream, { type: "text/plain\r\nX: y" })).rejects.toThrow(TypeError);
  });
});

describe("uploadMedia and mediaLinks", () => {
  const image = () => client.uploadMedia(new File([new Uint8Array(png(4, 5))], "tea.png", { type: "image/png" }));

  it("return metadata, and links that work without a credential", async () => {
    const media = await image();
    expect(media).toMatchObject({ type: "image", name: "tea.png", mimeType: "image/png", width: 4, height: 5 });
    const missing = "00000000-0000-4000-8000-000000000000.png";
    const links = await client.mediaLinks([media.mediaId, missing, media.mediaId]);
    expect(links).toMatchObject({ items: [{ mediaId: media.mediaId }], missing: [missing] });
    const answer = await fetch(links.items[0]!.url);
    expect([answer.status, Buffer.from(await answer.arrayBuffer())]).toEqual([200, png(4, 5)]);
  });

  it("links begin with the address under which the service is mounted", async () => {
    const { mediaId } = await image();
    await using mounted = connectAgent({
      baseURL: `${service.url}/agent/`,
      token: TOKENS.owner,
      fetch: (request) => fetch(new Request(request.url.replace("/agent/", "/"), request)),
    });
    const { items } = await mounted.mediaLinks([mediaId]);
    expect(items[0]!.url).toMatch(`${service.url}/agent/media/${mediaId}?expires=`);
  });

  it("reject with CallFailed and the service's code", async () => {
    const { mediaId } = await image();
    await using other = connectAgent({ baseURL: service.url, token: TOKENS.member });
    const code = (error: unknown) => (CallFailed.is(error) ? error.code : error);
    expect(await other.mediaLinks([mediaId]).catch(code)).toBe("media_owner_forbidden");
    expect(await client.mediaLinks([]).catch(code)).toBe("invalid_media_request");
    expect(await client.uploadMedia(new Blob(["<svg/>"], { type: "image/svg+xml" })).catch(code)).toBe("media_type_unsupported");
  });
});

it("what was uploaded goes into a query as it was answered (4.5 rule 11)", async () => {
  const inputs: ports.AgentTurn["input"][] = [];
  service.engine.otherwise(async ({ input }) => void inputs.push(input));
  const media = await client.uploadMedia(new Blob([new Uint8Array(png())], { type: "image/png" }));
  const { fileReference } = await client.uploadAttachment(new File(["note"], "note.txt"));
  const query = client.submit({ agentId: "helper", prompt: "Look", mediaRefs: [media], fileReferences: [fileReference] });
  expect((await query.ended).status).toBe("completed");
  expect(inputs).toEqual([
    [
      { type: "text", text: "Look" },
      { type: "media", mediaType: "image/png", name: "file", data: png().toString("base64") },
      { type: "text", text: expect.stringContaining(fileReference) },
    ],
  ]);
});

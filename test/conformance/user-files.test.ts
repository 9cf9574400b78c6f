import { Readable } from "node:stream";
import { memoryUserFiles, type MemoryUserFile } from "@portico/adapters/user-files/memory";
import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryRecords } from "@portico/adapters/records/memory";
import { createSystemClock, defineAdapter, ports } from "@portico/core";
import { attachmentKey, createAttachments } from "../../plugins/src/attachments-media/attachments.ts";
import { toFileReference } from "../../plugins/src/attachments-media/file-reference.ts";
import { createMedia, mediaKey } from "../../plugins/src/attachments-media/media.ts";
import { userFiles } from "@portico/plugins/attachments-media/user-files";
import { expect, it } from "vitest";
import { openAdapter } from "./open-adapter.ts";
import { userFilesConformance } from "./user-files.ts";

const bytes = new Uint8Array([...Array.from({ length: 300 }).keys()].map((at) => at % 256));

userFilesConformance("memory", () => {
  const media = new Map<string, MemoryUserFile>();
  const attachments = new Map<string, MemoryUserFile>();
  return {
    adapter: memoryUserFiles({ media, attachments }),
    async add() {
      media.set("m-1.png", { userId: "ada", name: "picture.png", mimeType: "image/png", bytes });
      attachments.set("/attachments/a-1", { userId: "ada", name: "note.txt", mimeType: "text/plain", bytes });
      return { mediaId: "m-1.png", fileReference: "/attachments/a-1", bytes };
    },
  };
});

userFilesConformance("attachments and media", () => {
  let given: { readonly records: ports.Records; readonly blobs: ports.Blobs; readonly clock: ports.Clock };
  // The same stores under the adapter and under the test.
  const { spec } = userFiles();
  const adapter = defineAdapter({
    ...spec,
    needs: { records: ports.records, blobs: ports.blobs, clock: ports.clock },
    open(filled, options: void, scope) {
      given = filled;
      return spec.open(filled, options, scope) as ports.UserFiles;
    },
  });
  return {
    adapter: adapter(),
    others: [memoryRecords(), memoryBlobs(undefined), systemClock()],
    async add() {
      const attachmentId = "0b0e7a34-9a52-4c1e-8f5e-2b1a0c9d8e7f";
      const mediaId = "1b0e7a34-9a52-4c1e-8f5e-2b1a0c9d8e7f.png";
      const put = (key: string) =>
        given.blobs.put(
          key,
          (async function* () {
            yield bytes;
          })(),
          { maxBytes: 1000 },
        );
      const about = { userId: "ada", createdAt: new Date(0).toISOString() };
      const text = await put(attachmentKey(attachmentId));
      await createAttachments(given.records).add(
        { attachmentId, name: "note.txt", mimeType: "text/plain", ...text, ...about },
        [],
      );
      const image = await put(mediaKey(mediaId));
      await createMedia(given).add(
        { mediaId, type: "image", name: "picture.png", mimeType: "image/png", ...image, ...about },
        [],
      );
      return { mediaId, fileReference: toFileReference(attachmentId), bytes };
    },
  };
});

it("a file that is longer than it was stored is out of reach: its reader has room for what it was", async () => {
  const records = await openAdapter(memoryRecords(), [systemClock()]);
  const blobs = await openAdapter(memoryBlobs(undefined), [systemClock()]);
  const given = { records: records.port, blobs: blobs.port, clock: createSystemClock() };
  const mediaId = "1b0e7a34-9a52-4c1e-8f5e-2b1a0c9d8e7f.png";
  const put = (length: number) => blobs.port.put(mediaKey(mediaId), Readable.from([Buffer.alloc(length)]), { maxBytes: 1000 });
  const about = {
    userId: "ada",
    type: "image",
    name: "picture.png",
    mimeType: "image/png",
    createdAt: new Date(0).toISOString(),
  } as const;
  await createMedia(given).add({ mediaId, ...(await put(300)), ...about }, []);
  const { spec } = userFiles();
  const files = spec.open(given, undefined, { onClose: () => {}, onReady: () => {} } as never) as ports.UserFiles;
  const found = await files.media("ada", mediaId);
  await put(301);
  await expect(found!.open(new AbortController().signal)).rejects.toThrow(ports.UserFilesUnavailable);
  await records.close();
  await blobs.close();
});

import { randomUUID } from "node:crypto";
import { orAborted, ports } from "@portico/core";
import type { BlobDraft } from "@portico/adapters/blobs/blob-place";
import type { BlockRoom } from "./block-room.ts";
import { findObject } from "./find-object.ts";
import { beginUpload, type MultipartUpload } from "./multipart-upload.ts";
import { createPart } from "./part.ts";
import type { StoreClient } from "./store-client.ts";
import { hasStatus, StoreError } from "./store-error.ts";

/** Stored with an object, and returned by HEAD. */
const PUT_ID = "x-amz-meta-put-id";
/** Timeout for clearing the remains of a failed upload. */
const CLEARING_MS = 10_000;

/** Shared by all drafts of a storage. */
export interface S3DraftGiven {
  readonly client: StoreClient;
  readonly room: BlockRoom;
  readonly partBytes: number;
  readonly clock: ports.Clock;
}

/**
 * A blob that fits into one part is sent in one request when it is placed. A larger blob is a multipart upload, which fills a
 * part while it sends the previous one.
 */
export function createS3Draft({ client, room, partBytes, clock }: S3DraftGiven, key: string, signal: AbortSignal): BlobDraft {
  const putId = randomUUID();
  const headers = { "content-type": "application/octet-stream", [PUT_ID]: putId };
  const discarded = new AbortController();
  const cleared = new AbortController();
  const writing = AbortSignal.any([signal, discarded.signal]);
  let part = createPart(partBytes, room.open());
  let upload: Promise<MultipartUpload> | undefined;
  /** The previous part. */
  let sending: Promise<void> = Promise.resolve();

  const sendPart = async (): Promise<void> => {
    await sending;
    // The signal does not end it: an upload whose ID was never received could not be aborted.
    upload ??= beginUpload(client, key, headers, cleared.signal);
    const begun = await orAborted(upload, writing);
    sending = handOver(begun, writing);
    // It is awaited with the next part, which may arrive much later.
    sending.catch(() => {});
  };
  /** Its bytes are held until it is sent or will not be sent any more. */
  const handOver = (begun: MultipartUpload, sent: AbortSignal): Promise<void> => {
    const { seal, close } = part;
    part = createPart(partBytes, room.open());
    return begun.send(seal(), sent).finally(close);
  };
  const placeObject = async (begun: MultipartUpload | undefined, ifAbsent: boolean, closing: AbortSignal): Promise<void> => {
    const condition: Record<string, string> = ifAbsent ? { "if-none-match": "*" } : {};
    try {
      if (begun) await begun.complete(condition, closing);
      else await client.ask({ method: "PUT", key, headers: { ...headers, ...condition }, body: part.seal() }, closing);
    } catch (error) {
      // An earlier attempt whose answer was lost may have created the blob or ended the upload.
      const mayBeDone = hasStatus(error, 412) || (error instanceof StoreError && error.code === "NoSuchUpload");
      if (mayBeDone && (await findObject(client, key, closing))?.headers[PUT_ID] === putId) return;
      throw ifAbsent && hasStatus(error, 412) ? new ports.BlobExists("There is a blob of that key") : error;
    }
  };

  return {
    async write(chunk) {
      for (let at = 0; at < chunk.byteLength;) {
        if (part.isFull) await sendPart();
        at += await part.take(chunk.subarray(at), writing);
      }
    },
    async place(ifAbsent, closing) {
      const begun = await upload;
      if (begun) {
        const last = handOver(begun, AbortSignal.any([closing, discarded.signal]));
        sending = Promise.all([sending, last]).then(() => {});
        await sending;
      }
      await placeObject(begun, ifAbsent, closing);
      part.close();
    },
    async discard() {
      discarded.abort();
      part.close();
      if (upload === undefined) return;
      const timer = clock.after(CLEARING_MS, () => cleared.abort());
      try {
        // The store may keep a part that arrives after the upload was aborted.
        await sending.catch(() => {});
        await (await upload).abort(cleared.signal);
      } finally {
        timer.cancel();
      }
    },
  };
}

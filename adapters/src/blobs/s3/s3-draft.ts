import { randomUUID } from "node:crypto";
import { orAborted, ports } from "@portico/core";
import type { BlobDraft } from "../blob-place.ts";
import type { BlockRoom } from "./block-room.ts";
import { findObject } from "./find-object.ts";
import { beginUpload, type MultipartUpload } from "./multipart-upload.ts";
import { createPart } from "./part.ts";
import type { StoreClient } from "./store-client.ts";
import { hasStatus, StoreError } from "./store-error.ts";

/** Kept with an object, and said again by HEAD. */
const PUT_ID = "x-amz-meta-put-id";
/** How long what is left of a broken upload may take to be cleared away. */
const CLEARING_MS = 10_000;

/** What all drafts of a place share. */
export interface S3DraftGiven {
  readonly client: StoreClient;
  readonly room: BlockRoom;
  readonly partBytes: number;
  readonly clock: ports.Clock;
}

/** One request when it is placed for what fits into a part; else an upload, of which a part is filled while the one before is sent. */
export function createS3Draft({ client, room, partBytes, clock }: S3DraftGiven, key: string, signal: AbortSignal): BlobDraft {
  const putId = randomUUID();
  const headers = { "content-type": "application/octet-stream", [PUT_ID]: putId };
  const discarded = new AbortController();
  const cleared = new AbortController();
  const writing = AbortSignal.any([signal, discarded.signal]);
  let part = createPart(partBytes, room.open());
  let upload: Promise<MultipartUpload> | undefined;
  /** Of the part before. */
  let sending: Promise<void> = Promise.resolve();

  const sendPart = async (): Promise<void> => {
    await sending;
    // Not ended by the signal: an upload whose name was never heard could not be aborted.
    upload ??= beginUpload(client, key, headers, cleared.signal);
    const begun = await orAborted(upload, writing);
    sending = handOver(begun, writing);
    // It is awaited with the next part, which may be long in coming.
    sending.catch(() => {});
  };
  /** Its bytes are held until it is sent, or will not be sent any more. */
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
      // What has made the blob, or ended the upload, may have been an attempt of our own whose answer was lost.
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
        // The store may keep a part that comes after it was told to forget the upload.
        await sending.catch(() => {});
        await (await upload).abort(cleared.signal);
      } finally {
        timer.cancel();
      }
    },
  };
}

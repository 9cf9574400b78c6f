import type { Readable } from "node:stream";
import type { BlobBytes, WantedBytes } from "@portico/adapters/blobs/blob-place";
import { findObject, readSize } from "./find-object.ts";
import type { StoreClient, StoreHeaders } from "./store-client.ts";
import { hasStatus } from "./store-error.ts";

/**
 * The wanted bytes of a blob, in one answer, so that a replacement of the blob does not change a transfer in progress. Only its
 * size if the wanted bytes are outside of it.
 */
export async function openObject(
  client: StoreClient,
  key: string,
  wanted: WantedBytes,
  signal: AbortSignal,
): Promise<BlobBytes | undefined> {
  const range = toRange(wanted);
  if (range === undefined) return sizeAlone(client, key, signal);
  try {
    const { status, headers, body } = await client.open({ method: "GET", key, headers: range === "" ? {} : { range } }, signal);
    // The connection may break while no read is in progress. The next read reports it.
    body.on("error", () => {});
    try {
      return toBytes(body, readExtent(status, headers));
    } catch (error) {
      body.destroy();
      throw error;
    }
  } catch (error) {
    if (hasStatus(error, 416)) return sizeAlone(client, key, signal);
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** The header's value. Empty for a whole blob, undefined for an invalid range. */
function toRange({ start, end }: WantedBytes): string | undefined {
  if (start === undefined && end === undefined) return "";
  const [first, last] = [start ?? 0, end ?? Number.MAX_SAFE_INTEGER];
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last) || first < 0 || last < first) return undefined;
  return `bytes=${first}-${end === undefined ? "" : last}`;
}

function isAbsent(error: unknown): boolean {
  // A missing bucket is an error, not a missing blob.
  return hasStatus(error, 404) && error.code !== "NoSuchBucket";
}

async function sizeAlone(client: StoreClient, key: string, signal: AbortSignal): Promise<BlobBytes | undefined> {
  const found = await findObject(client, key, signal);
  const read = async (): Promise<never> => {
    throw new Error("The blob has become another while it was opened");
  };
  return found && { size: found.size, read, close: async () => {} };
}

/** The bytes of an answer, and the size of the blob. */
interface Extent {
  readonly at: number;
  readonly past: number;
  readonly size: number;
}

function toBytes(body: Readable, { at, past, size }: Extent): BlobBytes {
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let position = at;
  let rest: Buffer = Buffer.alloc(0);
  return {
    size,
    async read(from, length) {
      if (from !== position) throw new Error("The store gave another range than it was asked for");
      if (rest.byteLength === 0) rest = (await chunks.next()).value ?? rest;
      const chunk = rest.subarray(0, length);
      rest = rest.subarray(chunk.byteLength);
      position += chunk.byteLength;
      return chunk;
    },
    async close() {
      // Reading the end frees the connection for reuse. A body that was not read to its end closes its connection.
      if (position === past) await chunks.next().catch(() => {});
      body.destroy();
    },
  };
}

/** Throws Error if the store does not report it. */
function readExtent(status: number, headers: StoreHeaders): Extent {
  if (status !== 206) {
    const size = readSize(headers["content-length"]);
    return { at: 0, past: size, size };
  }
  const [, first, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(`${headers["content-range"]}`) ?? [];
  return { at: readSize(first), past: readSize(last) + 1, size: readSize(size) };
}

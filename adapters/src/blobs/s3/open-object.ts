import type { Readable } from "node:stream";
import type { BlobBytes, WantedBytes } from "../blob-place.ts";
import { findObject, readSize } from "./find-object.ts";
import type { StoreClient, StoreHeaders } from "./store-client.ts";
import { hasStatus } from "./store-error.ts";

/**
 * The wanted bytes of a blob, in one answer: whoever puts another blob in its place meanwhile does not change what is on its way. Only
 * its size where they cannot be within it.
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
    // Nobody may be reading when the line is cut; whoever reads next is told.
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

/** The header's value; empty for a whole blob, undefined for what is no range. */
function toRange({ start, end }: WantedBytes): string | undefined {
  if (start === undefined && end === undefined) return "";
  const [first, last] = [start ?? 0, end ?? Number.MAX_SAFE_INTEGER];
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last) || first < 0 || last < first) return undefined;
  return `bytes=${first}-${end === undefined ? "" : last}`;
}

function isAbsent(error: unknown): boolean {
  // A bucket that is gone is no blob that is absent.
  return hasStatus(error, 404) && error.code !== "NoSuchBucket";
}

async function sizeAlone(client: StoreClient, key: string, signal: AbortSignal): Promise<BlobBytes | undefined> {
  const found = await findObject(client, key, signal);
  const read = async (): Promise<never> => {
    throw new Error("The blob has become another while it was opened");
  };
  return found && { size: found.size, read, close: async () => {} };
}

/** Which bytes an answer holds, and how many the blob has. */
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
      // Its end comes with its last byte, and sets the line free for others; what was not read to the end takes its line along.
      if (position === past) await chunks.next().catch(() => {});
      body.destroy();
    },
  };
}

/** Throws Error where the store does not say it. */
function readExtent(status: number, headers: StoreHeaders): Extent {
  if (status !== 206) {
    const size = readSize(headers["content-length"]);
    return { at: 0, past: size, size };
  }
  const [, first, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(`${headers["content-range"]}`) ?? [];
  return { at: readSize(first), past: readSize(last) + 1, size: readSize(size) };
}

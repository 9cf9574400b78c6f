import { defineAdapter, ports, type Scope, type Secret } from "@portico/core";
import { createBlobs } from "./create-blobs.ts";
import { BLOCK_BYTES, createBlockRoom } from "./s3/block-room.ts";
import { s3Place } from "./s3/s3-place.ts";
import { createStoreClient } from "./s3/store-client.ts";
import { sweepUploads } from "./s3/sweep-uploads.ts";
import { orUnavailable } from "./unavailable.ts";

export interface S3BlobsOptions {
  /** Where the store answers, `https://s3.eu-central-1.amazonaws.com`; a path is kept, credentials in it are refused. */
  readonly endpoint: string;
  readonly bucket: string;
  /** Default: `us-east-1`, which stores that know no regions take. */
  readonly region?: string;
  readonly accessKeyId: Secret;
  readonly secretAccessKey: Secret;
  /** Of temporary credentials. */
  readonly sessionToken?: Secret;
  /** What the names of all objects begin with, as `portico/`; default: nothing. What is below it belongs to this adapter. */
  readonly prefix?: string;
  /** Where the bucket is named: in the path, which every store takes, or in front of the host's name. Default: `path`. */
  readonly addressing?: "path" | "host";
  /**
   * Bytes of one part of an upload, from 5 MiB on; default 8 MiB. A blob that is no larger goes in one request. Each `put` holds up to
   * two parts in memory, and a blob has at most 10,000.
   */
  readonly partBytes?: number;
  /** Bytes that all of them hold together, from two parts on; default 256 MiB. Whoever needs more asks its source for no more meanwhile. */
  readonly heldBytes?: number;
  /** Milliseconds that the store may be silent before a request counts as failed; default 60,000. */
  readonly silenceMs?: number;
  /**
   * Abort, at opening, uploads below the prefix that began so many milliseconds ago: what killed processes left. Default: none, as a
   * rule of the bucket can do it, too. Choose more than the slowest upload takes.
   */
  readonly sweepAfterMs?: number;
}

const PART_BYTES = 8 * 1024 * 1024;
const HELD_BYTES = 256 * 1024 * 1024;
const SILENCE_MS = 60_000;

/**
 * Blobs as objects of a bucket, in any store that speaks S3 with conditional writes. Any number of processes may share a prefix. Opening
 * throws BlobsUnavailable when the bucket cannot be listed, and TypeError for options that are none.
 */
export const s3Blobs = defineAdapter({
  name: "blobs/s3",
  port: ports.blobs,
  needs: { clock: ports.clock },
  open: ({ clock }, options: S3BlobsOptions, scope) => openBucket(clock, options, scope),
});

async function openBucket(clock: ports.Clock, options: S3BlobsOptions, scope: Scope): Promise<ports.Blobs> {
  const { partBytes = PART_BYTES, heldBytes = HELD_BYTES, silenceMs = SILENCE_MS, sweepAfterMs = Infinity } = options;
  if (!Number.isSafeInteger(partBytes) || partBytes < 5 * 1024 * 1024) throw new TypeError("A part has 5 MiB or more");
  if (!Number.isSafeInteger(heldBytes) || heldBytes < 2 * partBytes) throw new TypeError("All uploads hold two parts or more");
  if (!Number.isSafeInteger(silenceMs) || silenceMs < 1) throw new TypeError("The store may be silent for some milliseconds");
  if (!(sweepAfterMs > 0)) throw new TypeError("The age of uploads to sweep is above 0");
  const room = createBlockRoom(Math.floor(heldBytes / BLOCK_BYTES), Math.ceil(partBytes / BLOCK_BYTES));
  const client = createStoreClient(options, silenceMs, clock);
  try {
    await orUnavailable(checkBucket());
  } catch (error) {
    await client.close();
    throw error;
  }
  return createBlobs(s3Place({ client, partBytes, clock, room }), scope);

  async function checkBucket(): Promise<void> {
    // A missing bucket would look like one without blobs: the answer to HEAD does not tell one from the other.
    const { signal } = new AbortController();
    await client.ask({ method: "GET", query: { "list-type": "2", prefix: client.prefix, "max-keys": "1" } }, signal);
    if (sweepAfterMs < Infinity) await sweepUploads(client, clock.now() - sweepAfterMs, signal);
  }
}

import { defineAdapter, type Live, ports, type Scope, type Secret } from "@portico/core";
import { createBlobs } from "@portico/adapters/blobs/create-blobs";
import { BLOCK_BYTES, createBlockRoom } from "./s3/block-room.ts";
import { checkFormat } from "./s3/check-format.ts";
import { s3Place } from "./s3/s3-place.ts";
import { createStoreClient } from "./s3/store-client.ts";
import { sweepUploads } from "./s3/sweep-uploads.ts";
import { orUnavailable } from "@portico/adapters/blobs/unavailable";

/** Options of `s3Blobs`. */
export interface S3BlobsOptions {
  /** Base URL of the store, `https://s3.eu-central-1.amazonaws.com`. A path is kept; credentials in it are refused. */
  readonly endpoint: string;
  readonly bucket: string;
  /** Default: `us-east-1`, which stores without regions accept. */
  readonly region?: string;
  readonly accessKeyId: Secret;
  readonly secretAccessKey: Secret;
  /** Session token of temporary credentials. */
  readonly sessionToken?: Secret;
  /**
   * The next keys, while the app is open, for the requests that begin later: also for the next parts of uploads in progress. Undefined keeps the
   * present ones. Default: they never change.
   */
  readonly rotation?: Live<S3Keys | undefined> | undefined;
  /** Prefix of the names of all objects, such as `portico/`. Default: none. All objects below it belong to this adapter. */
  readonly prefix?: string;
  /** Where the bucket is named: in the path, which every store accepts, or as a subdomain. Default: `path`. */
  readonly addressing?: "path" | "host";
  /**
   * Bytes of one part of an upload, at least 5 MiB; default 8 MiB. A smaller blob is sent in one request. Each `put` holds up to
   * two parts in memory, and a blob has at most 10,000.
   */
  readonly partBytes?: number;
  /**
   * Maximum bytes that all uploads hold together, at least two parts; default 256 MiB. When they are used up, uploads stop
   * reading from their sources.
   */
  readonly heldBytes?: number;
  /**
   * Idle timeout of a request in milliseconds. A request that failed is not repeated after this time. Default: 30,000. The request that
   * completes a large upload has 300,000.
   */
  readonly silenceMs?: number;
  /**
   * When opening, abort uploads below the prefix that are older than this many milliseconds: killed processes left them. Default:
   * none, because a rule of the bucket can do it, too. Choose more than the slowest upload takes.
   */
  readonly sweepAfterMs?: number;
}

/** The keys of `s3Blobs`. */
export type S3Keys = Pick<S3BlobsOptions, "accessKeyId" | "secretAccessKey" | "sessionToken">;

const PART_BYTES = 8 * 1024 * 1024;
const HELD_BYTES = 256 * 1024 * 1024;
const SILENCE_MS = 30_000;

/**
 * Blobs as objects of a bucket, in any store that supports S3 with conditional writes. Any number of processes may share a
 * prefix. Opening throws BlobsUnavailable when the bucket cannot be listed, and TypeError for invalid options.
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
  if (options.rotation) scope.onClose(options.rotation.follow((keys) => (keys ? client.prepareKeys(keys) : () => {})));
  return createBlobs(s3Place({ client, partBytes, clock, room }), scope);

  async function checkBucket(): Promise<void> {
    const { signal } = new AbortController();
    // A missing bucket would look like an empty one: the answer to HEAD does not distinguish them, but a list does.
    await checkFormat(client, signal);
    if (sweepAfterMs < Infinity) await sweepUploads(client, clock.now() - sweepAfterMs, signal);
  }
}

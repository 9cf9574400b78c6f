import {
  allowsRange,
  type ByteRange,
  checkConditions,
  contentDisposition,
  type Exchange,
  httpDate,
  type ports,
  readRange,
  type RequestHead,
  sendStream,
  ServiceError,
  type Validators,
} from "@portico/core";
import { fileErrors } from "./errors.ts";
import { type Media, mediaKey } from "./media.ts";

/**
 * Sends media, or the requested range of it (specification 4.5, rules 8 and 9). Throws `media_not_found` if the bytes are missing,
 * `range_not_satisfiable`, and BlobsUnavailable.
 */
export async function answerMedia(given: {
  readonly exchange: Exchange;
  readonly head: RequestHead;
  readonly media: Media;
  /** When the link expires, in milliseconds since 1970. */
  readonly expiresAt: number;
  readonly blobs: ports.Blobs;
  /** Default: the service sends all bytes. */
  readonly accel?: AccelRedirect | undefined;
  readonly clock: ports.Clock;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { exchange, head, media, expiresAt, blobs, accel, clock, signal } = given;
  const key = mediaKey(media.mediaId);
  const { size } = media;
  const { validators, always, described } = aboutMedia(media);
  // Rounded down, and computed when the head is sent, so that caches do not keep the answer longer than the link is valid (rule 9).
  const unchanging = (): Record<string, string> => {
    const secondsLeft = Math.max(0, Math.floor((expiresAt - clock.now()) / 1000));
    return { ...always, "cache-control": `private, max-age=${secondsLeft}` };
  };
  const outcome = checkConditions(head, validators);
  // If the bytes are sent, `open` checks that they exist. Answers without bytes must check it here.
  const isUnopened = head.method === "HEAD" || outcome !== "proceed";
  if (isUnopened) expectSize(await blobs.stat(key), size);
  if (outcome === "not_modified") return void exchange.respond(304, unchanging()).end();
  if (outcome === "precondition_failed") return void exchange.respond(412, { "content-length": "0" }).end();
  const range = allowsRange(head, validators) ? readRange(head.header("range"), size) : "whole";
  if (range === "unsatisfiable")
    throw new ServiceError(fileErrors.range_not_satisfiable, { headers: { "content-range": `bytes */${size}` } });
  if (!isUnopened && accel?.canSend(head, range)) {
    const found = await accel.find(media.mediaId);
    expectSize(found, size);
    const headers: Record<string, string> = {
      ...unchanging(),
      ...described,
      "content-length": "0",
      "x-accel-redirect": found.uri,
    };
    // nginx itself adds it to whole answers.
    if (range === "whole") delete headers["accept-ranges"];
    return void exchange.respond(200, headers).end();
  }
  const [status, part] = range === "whole" ? ([200, {}] as const) : ([206, range] as const);
  const length = range === "whole" ? size : range.end - range.start + 1;
  const sized = {
    ...described,
    "content-length": `${length}`,
    ...(range !== "whole" && { "content-range": `bytes ${range.start}-${range.end}/${size}` }),
  };
  await sendStream(given, {
    status,
    get headers() {
      return { ...unchanging(), ...sized };
    },
    async open() {
      const opened = await blobs.open(key, { ...part, signal });
      try {
        expectSize(opened, size);
      } catch (error) {
        opened?.stream.destroy();
        throw error;
      }
      return opened.stream;
    },
  });
}

/** With a wrong length, the client would wait for missing bytes, or read the remaining bytes as the next answer. */
function expectSize<T extends { readonly size: number }>(found: T | undefined, size: number): asserts found is T {
  if (!found) throw fileErrors.media_not_found();
  if (found.size !== size) throw new Error("The file is not as long as it was when it was stored");
}

/** The parts that all answers with the same media share. */
interface AboutMedia {
  readonly validators: Validators;
  readonly always: Readonly<Record<string, string>>;
  /** Of answers with its bytes. */
  readonly described: Readonly<Record<string, string>>;
}

/** Cached as long as the media's record is in memory, because computing it is a large part of the cost of a range. */
const known = new WeakMap<Media, AboutMedia>();

function aboutMedia(media: Media): AboutMedia {
  const before = known.get(media);
  if (before) return before;
  const lastModified = Date.parse(media.createdAt);
  // Without a digest, size and time identify the bytes, because the bytes under an ID never change.
  const etag = `"${media.sha256 ?? `${media.size.toString(16)}-${lastModified.toString(16)}`}"`;
  const about: AboutMedia = {
    validators: { etag, lastModified },
    always: {
      "accept-ranges": "bytes",
      "x-content-type-options": "nosniff",
      // An `<img>` caches an answer without CORS headers. Scripts of an allowed origin must not be served from that entry (RFC 9110, 12.5.5).
      vary: "origin",
      etag,
      "last-modified": httpDate(lastModified),
    },
    described: {
      "content-type": media.mimeType,
      "content-disposition": contentDisposition("inline", media.name),
      "content-security-policy": "sandbox",
    },
  };
  known.set(media, about);
  return about;
}

/** Lets nginx send the bytes of media, with `X-Accel-Redirect`. */
export interface AccelRedirect {
  /** Whether nginx would send exactly this range. If not, the service must send it. */
  canSend(head: RequestHead, range: ByteRange | "whole"): boolean;
  /** Where nginx finds the bytes. Undefined if they are missing. Throws BlobsUnavailable. */
  find(mediaId: string): Promise<{ readonly uri: string; readonly size: number } | undefined>;
}

/** Undefined if the blobs are not files. */
export function createAccelRedirect(blobs: ports.Blobs, prefix: string): AccelRedirect | undefined {
  const locate = blobs.locate?.bind(blobs);
  return (
    locate && {
      canSend,
      async find(mediaId) {
        const found = await locate(mediaKey(mediaId));
        return found && { uri: `${prefix}/${found.path}`, size: found.size };
      },
    }
  );
}

/**
 * nginx compares `If-Match` and `If-Unmodified-Since` with tags and times of its own. It refuses some ranges that are valid here, and it would
 * have to decide again whether `If-Range` turns a range into the whole.
 */
function canSend(head: RequestHead, range: ByteRange | "whole"): boolean {
  if (head.header("if-match") !== undefined || head.header("if-unmodified-since") !== undefined) return false;
  const asked = head.header("range");
  return range === "whole" ? asked === undefined : PLAIN_RANGE.test(asked ?? "");
}

const PLAIN_RANGE = /^bytes=(?:\d{1,15}-\d{0,15}|-\d{1,15})$/i;

import {
  allowsRange,
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
 * Sends media, or the range of it that is asked for (specification 4.5, rules 8 and 9). Throws `media_not_found` where the bytes are gone,
 * `range_not_satisfiable`, and BlobsUnavailable.
 */
export async function answerMedia(given: {
  readonly exchange: Exchange;
  readonly head: RequestHead;
  readonly media: Media;
  /** When the link ends, in milliseconds since 1970. */
  readonly expiresAt: number;
  readonly blobs: ports.Blobs;
  readonly clock: ports.Clock;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { exchange, head, media, expiresAt, blobs, clock, signal } = given;
  const key = mediaKey(media.mediaId);
  const { size } = media;
  const { validators, always, described } = aboutMedia(media);
  // Down to the second, and counted when the head leaves: not longer than the link is good (rule 9).
  const unchanging = () => {
    const secondsLeft = Math.max(0, Math.floor((expiresAt - clock.now()) / 1000));
    return { ...always, "cache-control": `private, max-age=${secondsLeft}` };
  };
  const outcome = checkConditions(head, validators);
  // What is sent is looked for where it is opened; only an answer without it has to ask.
  const isUnopened = head.method === "HEAD" || outcome !== "proceed";
  if (isUnopened) expectSize(await blobs.stat(key), size);
  if (outcome === "not_modified") return void exchange.respond(304, unchanging()).end();
  if (outcome === "precondition_failed") return void exchange.respond(412, { "content-length": "0" }).end();
  const range = allowsRange(head, validators) ? readRange(head.header("range"), size) : "whole";
  if (range === "unsatisfiable")
    throw new ServiceError(fileErrors.range_not_satisfiable, { headers: { "content-range": `bytes */${size}` } });
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

/** A length that is not the file's would leave the reader waiting, or take the rest of it for the next answer. */
function expectSize<T extends { readonly size: number }>(found: T | undefined, size: number): asserts found is T {
  if (!found) throw fileErrors.media_not_found();
  if (found.size !== size) throw new Error("The file is not as long as it was when it was stored");
}

/** What is the same in every answer with one media. */
interface AboutMedia {
  readonly validators: Validators;
  readonly always: Readonly<Record<string, string>>;
  /** Of answers with its bytes. */
  readonly described: Readonly<Record<string, string>>;
}

/** For as long as the media's record is held: making it takes longer than most of what a range costs here. */
const known = new WeakMap<Media, AboutMedia>();

function aboutMedia(media: Media): AboutMedia {
  const before = known.get(media);
  if (before) return before;
  const lastModified = Date.parse(media.createdAt);
  // Without a digest the time stands in: the bytes under an ID never change.
  const etag = `"${media.sha256 ?? `${media.size.toString(16)}-${lastModified.toString(16)}`}"`;
  const about: AboutMedia = {
    validators: { etag, lastModified },
    always: {
      "accept-ranges": "bytes",
      "x-content-type-options": "nosniff",
      // What `<img>` has left in a browser's cache, without a word of origins, is no answer to a script of an allowed one (RFC 9110, 12.5.5).
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

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
  /** For how long the link is still good. */
  readonly secondsLeft: number;
  readonly blobs: ports.Blobs;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { exchange, head, media, secondsLeft, blobs, signal } = given;
  const key = mediaKey(media.mediaId);
  const { size } = media;
  const modifiedAt = Date.parse(media.createdAt);
  // Without a digest the time stands in: the bytes under an ID never change.
  const etag = `"${media.sha256 ?? `${size.toString(16)}-${modifiedAt.toString(16)}`}"`;
  const always = {
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
    "cache-control": `private, max-age=${secondsLeft}`,
    // What `<img>` has left in a browser's cache, without a word of origins, is no answer to a script of an allowed one (RFC 9110, 12.5.5).
    vary: "origin",
    etag,
    "last-modified": httpDate(modifiedAt),
  };
  const headers = {
    ...always,
    "content-type": media.mimeType,
    "content-disposition": contentDisposition("inline", media.name),
    "content-security-policy": "sandbox",
  };
  const validators = { etag, lastModified: modifiedAt };
  const outcome = checkConditions(head, validators);
  // What is sent is looked for where it is opened; only an answer without it has to ask.
  const isUnopened = head.method === "HEAD" || outcome !== "proceed";
  if (isUnopened) expectSize(await blobs.stat(key), size);
  if (outcome === "not_modified") return void exchange.respond(304, always).end();
  if (outcome === "precondition_failed") return void exchange.respond(412, { "content-length": "0" }).end();
  const range = allowsRange(head, validators) ? readRange(head.header("range"), size) : "whole";
  if (range === "unsatisfiable")
    throw new ServiceError(fileErrors.range_not_satisfiable, { headers: { "content-range": `bytes */${size}` } });
  const [status, part] = range === "whole" ? ([200, {}] as const) : ([206, range] as const);
  const length = range === "whole" ? size : range.end - range.start + 1;
  const sized = {
    ...headers,
    "content-length": `${length}`,
    ...(range !== "whole" && { "content-range": `bytes ${range.start}-${range.end}/${size}` }),
  };
  await sendStream(given, {
    status,
    headers: sized,
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
